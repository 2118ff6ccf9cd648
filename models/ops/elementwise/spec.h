// Sum of two or more arrays of one shape, which are added from the first on, or product of two.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

enum class Elementwise { kSum, kProduct };

struct ElementwiseSpec {
  Shape shape;
  Elementwise function = Elementwise::kSum;
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
