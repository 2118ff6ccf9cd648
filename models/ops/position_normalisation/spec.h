// Layer normalisation of each position.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// The channels at a position are normalised to mean 0 and variance 1. Parameters: scale and, if
// `shift`, shift, each [channels].
struct PositionNormalisationSpec {
  Shape shape;
  float epsilon = 1e-5f;
  bool shift = true;
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
