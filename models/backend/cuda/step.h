// What changes from one training step to the next, and nothing else: the rest of a step is the same
// work on the same arrays, so that it can be recorded once as a graph and repeated.
#pragma once

#include <cstdint>

#include "common/optimiser/kernel.h"

namespace kumo::cuda {

// Lives in device memory.
struct StepBlock {
  // Dropout's stream: the key, and for each layer the upper half of the counter is made from these
  // (common/rng.h; layers are told apart by their index).
  uint64_t seed = 0;
  uint64_t partition = 0;
  uint64_t round = 0;
  uint64_t step = 0;
  // The local optimiser's, for weights that are decayed and for those that are not.
  StepNumbers decayed = {};
  StepNumbers undecayed = {};
};

}  // namespace kumo::cuda
