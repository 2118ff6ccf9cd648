// How long each layer of a network takes on the CPU.
#pragma once

#include "bench/train_work.h"

namespace kumo {

// A table: forward, backward, their share of a step, and the products that a plain convolution or
// product of matrices would do in that time, as a share of those that the processor can do at most.
// A layer that pools or activates in the same pass has that time too; one that needs fewer products
// than the plain way may have more than all of them.
void PrintLayerTimes(const Work& work, double seconds, bool cpu_time);

}  // namespace kumo
