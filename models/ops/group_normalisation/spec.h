// Group normalisation, and layer normalisation over a whole sample.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// Each of `groups` parts of a sample's channels is normalised to mean 0 and variance 1. Parameters:
// scale, shift, each [channels], or of the sample's shape if `elementwise`.
struct GroupNormalisationSpec {
  Shape shape;
  int groups = 1;  // divides the channels
  float epsilon = 1e-5f;
  bool elementwise = false;
  int64_t group_size() const { return shape.size() / groups; }
  bool looks_ahead(int64_t) const { return true; }
};

}  // namespace kumo
