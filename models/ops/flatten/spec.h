// Flattening of channels x height x width to one vector.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

struct FlattenSpec {
  Shape shape;
  bool looks_ahead(int64_t) const { return true; }
};

}  // namespace kumo
