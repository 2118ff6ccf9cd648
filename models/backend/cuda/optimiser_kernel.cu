// Optimisers of common/optimiser/: one fused pass over the arrays, with the CPU's bits (compiled
// without contraction of products and sums).
#include "models/backend/cuda/grid.cuh"

#define KUMO_ISA on_device
#define KUMO_STEP __device__ inline

namespace kumo::KUMO_ISA {

KUMO_STEP float SquareRoot(float x) { return sqrtf(x); }

}  // namespace kumo::KUMO_ISA

#include "common/optimiser/all.h"
#include "common/optimiser/scaled.h"

namespace kumo::cuda {
namespace {

template <typename Optimiser>
__global__ void StepKernel(const StepNumbers* numbers, const float* factor, StepFactors factors,
                           const float* gradient, int64_t n, float* weights, float* first,
                           float* second) {
  constexpr int kSlots = Optimiser::kTraits.slots;
  StepNumbers s = on_device::Scaled(*numbers, factors.rate, factors.decay);
  s.scale *= *factor;
  if (s.scale == 0.0f) return;  // a step that is left out
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    float a = 0.0f;
    float b = 0.0f;
    if constexpr (kSlots > 0) a = first[i];
    if constexpr (kSlots > 1) b = second[i];
    weights[i] = Optimiser::Next(s, gradient[i], weights[i], a, b);
    if constexpr (kSlots > 0) first[i] = a;
    if constexpr (kSlots > 1) second[i] = b;
  }
}

template <typename Optimiser>
cudaError_t Step(const Launch& launch, const StepNumbers* numbers, const float* factor,
                 const StepFactors& factors, const float* gradient, int64_t n, float* weights,
                 float* const* slots) {
  float* const first = Optimiser::kTraits.slots > 0 ? slots[0] : nullptr;
  float* const second = Optimiser::kTraits.slots > 1 ? slots[1] : nullptr;
  return Queue(launch, StepKernel<Optimiser>, BlocksFor(launch, n), numbers, factor, factors,
               gradient, n, weights, first, second);
}

template <typename... Optimiser>
OptimiserStep Find(OptimiserType type, on_device::OptimiserList<Optimiser...>) {
  OptimiserStep found = nullptr;
  ((type == Optimiser::kTraits.type ? void(found = Step<Optimiser>) : void()), ...);
  return found;
}

__global__ void DirectionKernel(const StepNumbers* numbers, const float* factor,
                                const float* gradient, int64_t n, float* mean, float* to) {
  StepNumbers s = *numbers;
  s.scale *= *factor;
  if (s.scale == 0.0f) return;
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    to[i] = on_device::MatrixDirection(s, gradient[i], mean[i]);
  }
}

__global__ void StepMatrixKernel(const StepNumbers* numbers, const float* factor,
                                 StepFactors factors, float stretch, const float* x, int64_t n,
                                 float* weights) {
  if (*factor == 0.0f) return;
  const on_device::MatrixStepNumbers s =
      on_device::MatrixScaled(*numbers, factors.rate, factors.decay, stretch);
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    weights[i] = on_device::MatrixNext(s, x[i], weights[i]);
  }
}

__global__ void CombineKernel(float p, const float* x, float q, const float* y, int64_t n,
                              float* to) {
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) to[i] = p * x[i] + q * y[i];
}

}  // namespace

cudaError_t DirectionOfMatrix(const Launch& launch, const StepNumbers* numbers, const float* factor,
                              const float* gradient, int64_t n, float* mean, float* to) {
  return Queue(launch, DirectionKernel, BlocksFor(launch, n), numbers, factor, gradient, n, mean,
               to);
}

cudaError_t StepMatrix(const Launch& launch, const StepNumbers* numbers, const float* factor,
                       const StepFactors& factors, float stretch, const float* x, int64_t n,
                       float* weights) {
  return Queue(launch, StepMatrixKernel, BlocksFor(launch, n), numbers, factor, factors, stretch, x,
               n, weights);
}

cudaError_t Combine(const Launch& launch, float p, const float* x, float q, const float* y,
                    int64_t n, float* to) {
  return Queue(launch, CombineKernel, BlocksFor(launch, n), p, x, q, y, n, to);
}

OptimiserStep FindOptimiserStep(OptimiserType type) {
  return Find(type, on_device::AllOptimisers());
}

}  // namespace kumo::cuda
