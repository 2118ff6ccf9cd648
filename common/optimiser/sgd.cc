// Optimisers sgd, momentum and nesterov.
#include "common/optimiser/kernel.h"
#include "common/vector_loop.h"

namespace kumo::KUMO_ISA {

static void SgdStep(const StepNumbers& numbers, const float* gradient, const float* weights,
                    float* next, float* const*, size_t n) {
  const StepNumbers s = numbers;
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) {
    const float g = s.scale * gradient[i] + s.weight_decay * weights[i];
    next[i] = weights[i] - s.learning_rate * g;
  }
}

static void MomentumStep(const StepNumbers& numbers, const float* gradient, const float* weights,
                         float* next, float* const* slots, size_t n) {
  const StepNumbers s = numbers;
  float* velocity = slots[0];
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) {
    const float g = s.scale * gradient[i] + s.weight_decay * weights[i];
    const float v = s.momentum * velocity[i] + g;
    velocity[i] = v;
    next[i] = weights[i] - s.learning_rate * v;
  }
}

static void NesterovStep(const StepNumbers& numbers, const float* gradient, const float* weights,
                         float* next, float* const* slots, size_t n) {
  const StepNumbers s = numbers;
  float* velocity = slots[0];
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) {
    const float g = s.scale * gradient[i] + s.weight_decay * weights[i];
    const float v = s.momentum * velocity[i] + g;
    velocity[i] = v;
    next[i] = weights[i] - s.learning_rate * (g + s.momentum * v);
  }
}

extern const OptimiserKernel kSgd, kMomentum, kNesterov;
constinit const OptimiserKernel kSgd = {"sgd", 0, false, SgdStep};
constinit const OptimiserKernel kMomentum = {"momentum", 1, false, MomentumStep};
constinit const OptimiserKernel kNesterov = {"nesterov", 1, false, NesterovStep};

}  // namespace kumo::KUMO_ISA
