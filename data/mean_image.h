// Mean image of a data set. A pure function; thread-safe.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "data/samples/dataset.h"

namespace kumo {

// The mean of each pixel, channels x height x width, over all samples: exact integer sums, so all
// machines get the same bits, divided in float64 and rounded to float32. The errors of
// Dataset::Read; FailedPrecondition if samples are no images, or images of
// several sizes.
Result<std::vector<float>> MeanImage(const Dataset& dataset);

}  // namespace kumo
