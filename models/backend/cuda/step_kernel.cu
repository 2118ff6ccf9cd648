// Values of the current step, written by a kernel's parameters: no copy from host memory that may
// change too early.
#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

__global__ void StoreKernel(StepBlock step, StepBlock* to) {
  if (FirstOfThread() == 0) *to = step;
}

}  // namespace

cudaError_t StoreStep(const Launch& launch, const StepBlock& step, StepBlock* to) {
  return Queue(launch, StoreKernel, 1, step, to);
}

}  // namespace kumo::cuda
