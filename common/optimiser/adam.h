// Optimisers adam (Kingma & Ba 2015, algorithm 1) and adamw (Loshchilov & Hutter 2019), with
// epsilon outside the corrected square root.
#pragma once

#include "common/optimiser/kernel.h"
#include "common/optimiser/sgd.h"

namespace kumo::KUMO_ISA {

// w less what the mean and the mean square of its gradients say, g being the newest.
KUMO_STEP float AdamNext(const StepNumbers& s, float g, float w, float& mean, float& square) {
  mean = s.beta1 * mean + s.one_minus_beta1 * g;
  square = s.beta2 * square + s.one_minus_beta2 * (g * g);
  return w - s.adam_rate * (mean / (SquareRoot(square) * s.adam_inverse + s.epsilon));
}

struct Adam {
  static constexpr OptimiserTraits kTraits = {.type = OptimiserType::kAdam,
                                              .name = "adam",
                                              .help = "Kingma & Ba 2015",
                                              .slots = 2,
                                              .state = "moments",
                                              .corrects_bias = true};

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float& mean,
                              float& square) {
    return AdamNext(s, Decayed(s, gradient, w), w, mean, square);
  }
};

struct AdamW {
  static constexpr OptimiserTraits kTraits = {.type = OptimiserType::kAdamW,
                                              .name = "adamw",
                                              .help = "Loshchilov & Hutter 2019",
                                              .slots = 2,
                                              .state = "moments",
                                              .corrects_bias = true};

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float& mean,
                              float& square) {
    return AdamNext(s, s.scale * gradient, w * s.shrink, mean, square);
  }
};

}  // namespace kumo::KUMO_ISA
