// Mean images of a data set. A pure function; thread-safe.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "data/samples/dataset.h"

namespace kumo {

// By field: of a picture the mean of each pixel, channels x height x width, over all samples; of
// another field nothing. Exact integer sums, so all machines get the same bits, divided in float64
// and rounded to float32. The errors of Dataset::Read; FailedPrecondition if samples have no
// pictures, or pictures of several sizes.
Result<std::vector<std::vector<float>>> MeanImages(const Dataset& dataset);

}  // namespace kumo
