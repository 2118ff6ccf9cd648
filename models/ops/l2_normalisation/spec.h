// Normalisation of the channels at each position to length 1.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// y = scale x / (sqrt(sum x^2 + under_root) + beside_root). Parameter: scale [channels].
struct L2NormalisationSpec {
  Shape shape;
  float under_root = 1e-10f;
  float beside_root = 0;
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
