// Activation function of each element.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

enum class Activation { kRelu, kLeakyRelu, kGelu, kGeluTanh, kSilu, kTanh, kSigmoid };

// Whether Backward computes the derivative from the function's input; if false, from its value.
// GELU and SiLU fall and rise again, so that two inputs have the same value.
constexpr bool DerivesFromInput(Activation activation) {
  return activation == Activation::kGelu || activation == Activation::kGeluTanh ||
         activation == Activation::kSilu;
}
// Whether a larger input never gives a smaller value.
constexpr bool IsNonDecreasing(Activation activation) { return !DerivesFromInput(activation); }

struct ActivationSpec {
  Activation activation = Activation::kRelu;
  Shape shape;
  float slope = 0;  // of kLeakyRelu, in (0, 1): the factor of numbers below 0
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
