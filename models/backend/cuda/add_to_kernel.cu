// Sum of two arrays of any alignment.
#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

__global__ void AddToKernel(float factor, const float* from, int64_t n, float* to) {
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) to[i] += factor * from[i];
}

}  // namespace

cudaError_t AddTo(const Launch& launch, float factor, const float* from, int64_t n, float* to) {
  return Queue(launch, AddToKernel, BlocksFor(launch, n), factor, from, n, to);
}

}  // namespace kumo::cuda
