// Factors of the optimiser's step on a part of the weights: a layer's learning_rate_factor and
// weight_decay_factor in a network file.
#pragma once

namespace kumo {

struct StepFactors {
  float rate = 1.0f;   // of the learning rate, >= 0; 0: the weights never change
  float decay = 1.0f;  // of the weight decay, >= 0

  bool frozen() const { return rate == 0.0f; }
  bool operator==(const StepFactors&) const = default;
};

}  // namespace kumo
