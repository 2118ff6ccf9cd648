// The list of optimisers. A new optimiser is a header beside adam.h, a value of OptimiserType
// (kernel.h), and its place here. The words of optimiser.type, the CPU's and the device's kernels
// come from it.
#pragma once

#include "common/optimiser/adam.h"
#include "common/optimiser/muon.h"
#include "common/optimiser/sgd.h"

namespace kumo::KUMO_ISA {

template <typename... Optimiser>
struct OptimiserList {};

using AllOptimisers = OptimiserList<Sgd, Momentum, Nesterov, Adam, AdamW, Muon>;

}  // namespace kumo::KUMO_ISA
