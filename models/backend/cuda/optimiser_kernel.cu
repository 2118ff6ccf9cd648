// The optimisers of common/optimiser/, one fused pass over the arrays; compiled without contraction
// of products and sums, so the same bits.
#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

struct Slots {
  float* first;
  float* second;
};

struct Sgd {
  __device__ static float Next(const StepNumbers& s, float gradient, float w, Slots, int64_t) {
    const float g = s.scale * gradient + s.weight_decay * w;
    return w - s.learning_rate * g;
  }
};

template <bool nesterov>
struct Momentum {
  __device__ static float Next(const StepNumbers& s, float gradient, float w, Slots slots,
                               int64_t i) {
    const float g = s.scale * gradient + s.weight_decay * w;
    const float v = s.momentum * slots.first[i] + g;
    slots.first[i] = v;
    return w - s.learning_rate * (nesterov ? g + s.momentum * v : v);
  }
};

template <bool decoupled>
struct Adam {
  __device__ static float Next(const StepNumbers& s, float gradient, float w, Slots slots,
                               int64_t i) {
    float g = s.scale * gradient;
    if (decoupled) {
      w *= s.shrink;
    } else {
      g += s.weight_decay * w;
    }
    const float m = s.beta1 * slots.first[i] + s.one_minus_beta1 * g;
    const float v = s.beta2 * slots.second[i] + s.one_minus_beta2 * (g * g);
    slots.first[i] = m;
    slots.second[i] = v;
    return w - s.adam_rate * (m / (sqrtf(v) * s.adam_inverse + s.epsilon));
  }
};

template <typename Rule>
__global__ void StepKernel(const StepNumbers* numbers, const float* factor, const float* gradient,
                           int64_t n, float* weights, Slots slots) {
  StepNumbers s = *numbers;
  s.scale *= *factor;
  if (s.scale == 0.0f) return;  // a step that is left out
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    weights[i] = Rule::Next(s, gradient[i], weights[i], slots, i);
  }
}

template <typename Rule>
cudaError_t LaunchStep(const Launch& launch, const StepNumbers* numbers, const float* factor,
                       const float* gradient, int64_t n, float* weights, Slots slots) {
  return Queue(launch, StepKernel<Rule>, BlocksFor(launch, n), numbers, factor, gradient, n,
               weights, slots);
}

}  // namespace

cudaError_t SgdStep(const Launch& launch, const StepNumbers* numbers, const float* factor,
                    const float* gradient, int64_t n, float* weights, float* const*) {
  return LaunchStep<Sgd>(launch, numbers, factor, gradient, n, weights, {});
}
cudaError_t MomentumStep(const Launch& launch, const StepNumbers* numbers, const float* factor,
                         const float* gradient, int64_t n, float* weights, float* const* slots) {
  return LaunchStep<Momentum<false>>(launch, numbers, factor, gradient, n, weights,
                                     {slots[0], nullptr});
}
cudaError_t NesterovStep(const Launch& launch, const StepNumbers* numbers, const float* factor,
                         const float* gradient, int64_t n, float* weights, float* const* slots) {
  return LaunchStep<Momentum<true>>(launch, numbers, factor, gradient, n, weights,
                                    {slots[0], nullptr});
}
cudaError_t AdamStep(const Launch& launch, const StepNumbers* numbers, const float* factor,
                     const float* gradient, int64_t n, float* weights, float* const* slots) {
  return LaunchStep<Adam<false>>(launch, numbers, factor, gradient, n, weights,
                                 {slots[0], slots[1]});
}
cudaError_t AdamWStep(const Launch& launch, const StepNumbers* numbers, const float* factor,
                      const float* gradient, int64_t n, float* weights, float* const* slots) {
  return LaunchStep<Adam<true>>(launch, numbers, factor, gradient, n, weights,
                                {slots[0], slots[1]});
}

}  // namespace kumo::cuda
