#include "models/losses/cuda_sums.h"

#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

// A block for each sum.
__global__ void AddKernel(int64_t batch, int64_t positions, const float* of_positions,
                          double* sums) {
  const float* const of_sum = of_positions + blockIdx.x * batch * positions;
  double sum = 0;
  for (int64_t n = threadIdx.x; n < batch * positions; n += kThreads) {
    sum += static_cast<double>(of_sum[n]);
  }
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] += sum / static_cast<double>(positions);
}

}  // namespace

cudaError_t AddLosses(const Launch& launch, int64_t batch, int64_t positions, int count,
                      const float* of_positions, double* sums) {
  return Queue(launch, AddKernel, count, batch, positions, of_positions, sums);
}

}  // namespace kumo::cuda
