// Optimisers sgd, momentum and nesterov.
#pragma once

#include "common/optimiser/kernel.h"

namespace kumo::KUMO_ISA {

// The gradient of the loss with the penalty weight_decay w^2 / 2.
KUMO_STEP float Decayed(const StepNumbers& s, float gradient, float w) {
  return s.scale * gradient + s.weight_decay * w;
}

struct Sgd {
  static constexpr OptimiserTraits kTraits = {
      .type = OptimiserType::kSgd, .name = "sgd", .help = "stochastic gradient descent"};

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float&, float&) {
    const float g = Decayed(s, gradient, w);
    return w - s.learning_rate * g;
  }
};

struct Momentum {
  static constexpr OptimiserTraits kTraits = {.type = OptimiserType::kMomentum,
                                              .name = "momentum",
                                              .help = "heavy-ball momentum",
                                              .slots = 1,
                                              .state = "velocity",
                                              .has_momentum = true,
                                              .has_unit_gain = true};

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float& velocity,
                              float&) {
    const float g = Decayed(s, gradient, w);
    velocity = s.momentum * velocity + g;
    return w - s.learning_rate * velocity;
  }
};

struct Nesterov {
  static constexpr OptimiserTraits kTraits = {.type = OptimiserType::kNesterov,
                                              .name = "nesterov",
                                              .help = "Nesterov momentum",
                                              .slots = 1,
                                              .state = "velocity",
                                              .has_momentum = true,
                                              .has_unit_gain = true};

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float& velocity,
                              float&) {
    const float g = Decayed(s, gradient, w);
    velocity = s.momentum * velocity + g;
    return w - s.learning_rate * (g + s.momentum * velocity);
  }
};

}  // namespace kumo::KUMO_ISA
