// Optimisers adam (Kingma & Ba 2015, algorithm 1) and adamw (Loshchilov & Hutter 2019), with
// epsilon outside the corrected square root.
#include "common/optimiser/kernel.h"
#include "common/vector_loop.h"

namespace kumo::KUMO_ISA {

template <bool decoupled>
static void AdamStep(const StepNumbers& numbers, const float* gradient, const float* weights,
                     float* next, float* const* slots, size_t n) {
  const StepNumbers s = numbers;
  float* mean = slots[0];
  float* square = slots[1];
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) {
    float w = weights[i];
    float g = s.scale * gradient[i];
    if constexpr (decoupled) {
      w *= s.shrink;
    } else {
      g += s.weight_decay * w;
    }
    const float m = s.beta1 * mean[i] + s.one_minus_beta1 * g;
    const float v = s.beta2 * square[i] + s.one_minus_beta2 * (g * g);
    mean[i] = m;
    square[i] = v;
    next[i] = w - s.adam_rate * (m / (__builtin_sqrtf(v) * s.adam_inverse + s.epsilon));
  }
}

extern const OptimiserKernel kAdam, kAdamW;
constinit const OptimiserKernel kAdam = {"adam", 2, true, AdamStep<false>};
constinit const OptimiserKernel kAdamW = {"adamw", 2, true, AdamStep<true>};

}  // namespace kumo::KUMO_ISA
