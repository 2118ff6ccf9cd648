// Sums of losses on a CUDA device.
#pragma once

#include <cstdint>

#include "models/backend/cuda/kernels.h"

namespace kumo::cuda {

// Adds the terms of positions (or of elements) to `count` sums, in a fixed order: the term of a
// sample is the mean over its positions. of_positions: [count][batch x positions]. Arrays are in
// device memory; returns whether the kernel could be launched.
cudaError_t AddLosses(const Launch& launch, int64_t batch, int64_t positions, int count,
                      const float* of_positions, double* sums);

}  // namespace kumo::cuda
