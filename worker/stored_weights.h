// The weights that a checkpoint holds, as one flat vector.
#pragma once

#include <string>

#include "common/buffer.h"
#include "common/parameter_layout.h"
#include "common/status.h"

namespace kumo {

// The weights that are evaluated (layout.size() floats) of the checkpoint in the folder `path`
// (".../checkpoints/round-..."), which is verified. FailedPrecondition when they are of another
// network; otherwise what VerifyCheckpoint says.
Result<Buffer<float>> LoadStoredWeights(const std::string& path, const ParameterLayout& layout);

}  // namespace kumo
