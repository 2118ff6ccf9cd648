// Values that change from one training step to the next. The rest of a step is the same work on the
// same arrays, so that the step can be recorded once as a graph and repeated. Both structs live in
// device memory.
#pragma once

#include <cstdint>

#include "common/optimiser/kernel.h"

namespace kumo::cuda {

// Written anew for each step.
struct StepBlock {
  // Dropout's stream: the key, and for each layer the upper half of the counter is made from these
  // (common/base/rng.h; layers are told apart by their index).
  uint64_t seed = 0;
  uint64_t partition = 0;
  uint64_t round = 0;
  uint64_t step = 0;
  // The local optimiser's, for weights that are decayed and for those that are not.
  StepNumbers decayed = {};
  StepNumbers undecayed = {};
  // See ArenaArithmetic::MeasureGradients.
  float clip_norm = 0;
  float gradient_factor = 1;
};

// Factor of losses, kept from step to step. Stays 1 except for fp16.
struct LossScale {
  float scale = 1;
  int32_t good_steps = 0;  // since it last changed
};

}  // namespace kumo::cuda
