// Weights for a new job from the checkpoint of another one, by tensors' names
// (network.initial_weights).
#pragma once

#include <span>
#include <string>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// Writes the evaluated weights of each tensor of the checkpoint at `path` (source_folder.h) that
// has the name and the shape of one of `layout` over that one's, bit for bit, and leaves the others
// as they are. weights: layout.size() floats. What was taken, and why others were not.
//
// FailedPrecondition where no tensor fits, and where a checkpoint of release 0.1, which does not
// say what its tensors are, is of another network; otherwise what VerifyCheckpoint says.
Result<checkpoint::Origin> TransferWeights(const std::string& path, const ParameterLayout& layout,
                                           std::span<float> weights);

}  // namespace kumo
