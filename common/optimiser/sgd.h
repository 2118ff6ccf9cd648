// Optimisers sgd, momentum and nesterov.
#pragma once

#include "common/optimiser/kernel.h"

namespace kumo::KUMO_ISA {

struct Sgd {
  static constexpr const char* kName = "sgd";
  static constexpr int kSlots = 0;
  static constexpr const char* kState = "";
  static constexpr bool kCorrectsBias = false;

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float&, float&) {
    const float g = s.scale * gradient + s.weight_decay * w;
    return w - s.learning_rate * g;
  }
};

struct Momentum {
  static constexpr const char* kName = "momentum";
  static constexpr int kSlots = 1;
  static constexpr const char* kState = "velocity";
  static constexpr bool kCorrectsBias = false;

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float& velocity,
                              float&) {
    const float g = s.scale * gradient + s.weight_decay * w;
    velocity = s.momentum * velocity + g;
    return w - s.learning_rate * velocity;
  }
};

struct Nesterov {
  static constexpr const char* kName = "nesterov";
  static constexpr int kSlots = 1;
  static constexpr const char* kState = "velocity";
  static constexpr bool kCorrectsBias = false;

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float& velocity,
                              float&) {
    const float g = s.scale * gradient + s.weight_decay * w;
    velocity = s.momentum * velocity + g;
    return w - s.learning_rate * (g + s.momentum * velocity);
  }
};

}  // namespace kumo::KUMO_ISA
