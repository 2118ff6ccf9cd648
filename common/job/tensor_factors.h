// Step factors of a tensor in a message (wire.Tensor, checkpoint.Tensor): absent if they are 1, so
// that messages and manifests of networks without factors keep their bytes.
#pragma once

#include "common/optimiser/step_factors.h"

namespace kumo {

template <typename Tensor>
void WriteFactors(const StepFactors& factors, Tensor* tensor) {
  if (factors.rate != 1.0f) tensor->set_rate_factor(factors.rate);
  if (factors.decay != 1.0f) tensor->set_decay_factor(factors.decay);
}

template <typename Tensor>
StepFactors ReadFactors(const Tensor& tensor) {
  StepFactors factors;
  if (tensor.has_rate_factor()) factors.rate = tensor.rate_factor();
  if (tensor.has_decay_factor()) factors.decay = tensor.decay_factor();
  return factors;
}

}  // namespace kumo
