// Group normalisation, and layer normalisation over a whole sample.
#pragma once

#include <cstdint>

#include "models/tensor.h"

namespace kumo {

// Of each sample by itself: its channels, in `groups` parts, each to mean 0 and variance 1.
// Parameters: scale, shift, each [channels], or, where `elementwise`, of the sample's shape.
struct GroupNormalisationSpec {
  Shape shape;
  int groups = 1;  // divides the channels
  float epsilon = 1e-5f;
  bool elementwise = false;
  int64_t group_size() const { return shape.size() / groups; }
  bool looks_ahead(int64_t) const { return true; }
};

}  // namespace kumo
