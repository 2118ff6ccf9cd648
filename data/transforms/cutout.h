// A square of each training image, at a random place, is painted over with grey or the mean colour
// (data.cutout): DeVries and Taylor 2017, "Improved regularization of convolutional neural networks
// with cutout".
//
// Values and pure functions; thread-safe.
#pragma once

#include <memory>

#include "data/resample.h"
#include "data/transforms/transform.h"

namespace kumo {

// What of an image is painted over: the square's middle is any pixel with the same probability, and
// of the square there is what lies in the image.
Rectangle DrawSquare(int64_t side, int64_t height, int64_t width, const SampleKey& key);

Result<std::unique_ptr<const Transform>> MakeCutout(const TransformRequest& request);

}  // namespace kumo
