// The weights that a checkpoint holds, as one flat vector.
#pragma once

#include <string>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"

namespace kumo {

// The weights that are evaluated (layout.size() floats) of the checkpoint in the folder `path`
// (".../checkpoints/round-..."), which is verified. FailedPrecondition when they are of another
// network; otherwise what VerifyCheckpoint says.
Result<Buffer<float>> LoadStoredWeights(const std::string& path, const ParameterLayout& layout);

}  // namespace kumo
