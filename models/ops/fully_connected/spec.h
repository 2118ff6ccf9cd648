// Fully connected layer: one product of matrices, for each sample or for each position.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// `outputs` numbers of `inputs` numbers, at each of `positions`. Parameters: weight
// [outputs][inputs], bias [outputs].
struct FullyConnectedSpec {
  int64_t inputs = 1;
  int64_t outputs = 1;
  bool bias = true;
  int64_t positions = 1;
  int64_t products() const { return inputs * outputs * positions; }
  bool looks_ahead(int64_t sequence) const { return positions != sequence; }
};

}  // namespace kumo
