// Normalisation of the channels at each position to length 1.
#pragma once

#include <cstdint>

#include "models/tensor.h"

namespace kumo {

// Parameter: scale [channels].
struct L2NormalisationSpec {
  Shape shape;
  float epsilon = 1e-10f;  // added to the square of the length
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
