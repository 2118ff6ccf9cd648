// Dropout: in training a random share of the elements is zeroed.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

struct DropoutSpec {
  Shape shape;
  float ratio = 0;
  int layer = 0;  // place in the network file, which distinguishes the streams of two layers
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
