// Optimiser muon (Jordan et al. 2024): matrices are stepped along their orthogonalised momentum,
// all other weights by adamw. models/weight_step.h tells which weights are matrices, and makes
// the orthogonal factor between the two functions of this header.
#pragma once

#include "common/optimiser/adam.h"
#include "common/optimiser/kernel.h"

namespace kumo::KUMO_ISA {

struct Muon {
  static constexpr OptimiserTraits kTraits = {
      .type = OptimiserType::kMuon,
      .name = "muon",
      .help = "orthogonalised momentum of matrices, adamw for the rest; in block mode only",
      .slots = 2,
      .state = "momentum of matrices, moments of the rest",
      .has_momentum = true,
      .corrects_bias = true,
      .steps_matrices = true};

  KUMO_STEP static float Next(const StepNumbers& s, float gradient, float w, float& mean,
                              float& square) {
    return AdamW::Next(s, gradient, w, mean, square);
  }
};

// An element of the matrix that is orthogonalised: Nesterov's look-ahead of a mean of gradients.
KUMO_STEP float MatrixDirection(const StepNumbers& s, float gradient, float& mean) {
  const float g = s.one_minus_momentum * (s.scale * gradient);
  mean = s.momentum * mean + g;
  return g + s.momentum * mean;
}

// Step numbers of a matrix with factors, as Scaled makes them of other weights.
struct MatrixStepNumbers {
  float rate;
  float shrink;
};
KUMO_STEP MatrixStepNumbers MatrixScaled(const StepNumbers& s, float rate_factor,
                                         float decay_factor, float stretch) {
  const float rate = s.matrix_rate * rate_factor;
  const float decay = s.weight_decay * decay_factor;
  return {rate * stretch,
          static_cast<float>(1.0 - static_cast<double>(rate) * static_cast<double>(decay))};
}

// x: the element of the orthogonal factor.
KUMO_STEP float MatrixNext(const MatrixStepNumbers& s, float x, float w) {
  return w * s.shrink - s.rate * x;
}

}  // namespace kumo::KUMO_ISA
