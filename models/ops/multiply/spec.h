// Elementwise product of two arrays of one shape.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

struct MultiplySpec {
  Shape shape;
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
