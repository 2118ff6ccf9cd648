// Step numbers of weights whose learning rate and weight decay have factors. A kernel header, as
// kernel.h says.
#pragma once

#include "common/optimiser/kernel.h"

namespace kumo::KUMO_ISA {

// Factors of 1 leave the bits as they are.
KUMO_STEP StepNumbers Scaled(StepNumbers s, float rate_factor, float decay_factor) {
  s.learning_rate *= rate_factor;
  s.adam_rate *= rate_factor;
  s.weight_decay *= decay_factor;
  s.shrink = static_cast<float>(1.0 - static_cast<double>(s.learning_rate) *
                                          static_cast<double>(s.weight_decay));
  return s;
}

}  // namespace kumo::KUMO_ISA
