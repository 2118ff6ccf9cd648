// to += factor * from, element by element, with the CPU's bits (compiled without contraction of the
// product and the sum): sums of gradients and of weights are then the same on both devices.
//
// A thread moves single floats, not packs of 16 bytes: parts of arenas begin anywhere, and both
// arrays may be aligned differently. Neighbouring threads still read neighbouring elements.
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
