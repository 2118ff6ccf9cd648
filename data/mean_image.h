// The mean of a data set's images.
//
// A pure function; thread-safe.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "data/dataset.h"

namespace kumo {

// The mean of each pixel, channels x height x width, over all samples: sums of bytes, which are
// exact, so that every machine finds the same bits; divided in float64, rounded to float32. The
// errors of Dataset::Read; FailedPrecondition where samples are no images.
Result<std::vector<float>> MeanImage(const Dataset& dataset);

}  // namespace kumo
