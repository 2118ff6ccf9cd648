// Gradient of an activation function on CUDA, for ops that apply the function to their result.
#pragma once

#include <cstdint>

#include "models/backend/cuda/kernels.h"
#include "models/ops/activation/spec.h"

namespace kumo::cuda {

// dx = dy f' for n elements. `from` is the function's value, or its input (DerivesFromInput). dx
// may be dy.
cudaError_t ActivationBackward(const Launch& launch, Precision precision,
                               const ActivationSpec& spec, const void* from, const void* dy,
                               int64_t n, void* dx);

}  // namespace kumo::cuda
