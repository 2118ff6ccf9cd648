// Positional embedding: a trained vector added to each position.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// Parameter: weight [positions][channels].
struct PositionalEmbeddingSpec {
  Shape shape;
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
