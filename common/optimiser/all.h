// The one list of optimisers: a new one gets a header beside adam.h, and its place here. What
// optimiser.type may say, the CPU's kernels and a device's come from here.
#pragma once

#include "common/optimiser/adam.h"
#include "common/optimiser/sgd.h"

namespace kumo::KUMO_ISA {

template <typename... Optimiser>
struct OptimiserList {};

using AllOptimisers = OptimiserList<Sgd, Momentum, Nesterov, Adam, AdamW>;

}  // namespace kumo::KUMO_ISA
