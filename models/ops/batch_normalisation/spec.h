// Batch normalisation of each channel.
#pragma once

#include <cstdint>
#include <optional>

#include "models/ops/activation/spec.h"
#include "models/tensor/tensor.h"

namespace kumo {

// Parameters: scale, shift, running mean, running variance, each [channels].
struct BatchNormalisationSpec {
  Shape shape;
  float epsilon = 1e-5f;
  float momentum = 0.9f;
  // Training normalises by the running statistics, too, and leaves them.
  bool frozen = false;
  std::optional<Activation> activation;  // of the result; see OpFactory::FusesActivation
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
