// Weights for a new job from elsewhere, by tensors' names: from the checkpoint of another one, or
// from a file of tensors that another program may have written (network.initial_weights,
// network.initial_names).
#pragma once

#include <span>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// Writes each tensor of network.initial_weights that has the name (or, by tensor_names.h, is
// called otherwise there) and the shape of one of `layout` over that one's, and leaves the others
// as they are. From a checkpoint (source_folder.h), whose evaluated weights these are, bit for bit;
// from a file, which ends in .safetensors or .npz, rounded to float32. weights: layout.size()
// floats, some of which may have been written where there is an error. What was taken, why others
// were not, and what of there was not used.
//
// FailedPrecondition where no tensor fits, and where a checkpoint of release 0.1, which does not
// say what its tensors are, is of another network; otherwise what VerifyCheckpoint,
// ReadTensorFile and TensorNames::Read say.
Result<checkpoint::Origin> TransferWeights(const Experiment::Network& network,
                                           const ParameterLayout& layout, std::span<float> weights);

}  // namespace kumo
