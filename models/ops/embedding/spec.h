// Embedding: a trained vector for each integer.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// Integers in [0, vocabulary) to vectors. Parameter: weight [vocabulary][outputs].
struct EmbeddingSpec {
  int64_t vocabulary = 1;
  int64_t outputs = 1;
  int64_t positions = 1;
  Shape output() const { return {outputs, positions}; }
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
