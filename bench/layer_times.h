// Time per layer of a network on the CPU.
#pragma once

#include "bench/train_work.h"

namespace kumo {

// A table: forward and backward time, their share of a step, and the products of a plain
// convolution or matrix product per time, as a share of the processor's maximum. A layer that pools
// or activates in the same pass includes that time; a layer that needs fewer products than the
// plain algorithm may exceed 100 %.
void PrintLayerTimes(const Work& work, double seconds, bool cpu_time);

}  // namespace kumo
