// Cutout: paints a square at a random position of each training image with grey or the mean colour
// (data.cutout): DeVries and Taylor 2017, "Improved regularization of convolutional neural networks
// with cutout". The same square of all pictures of a sample; masks and boxes stay, since the
// objects are still there, behind it.
//
// Values and pure functions; thread-safe.
#pragma once

#include <memory>

#include "data/samples/resample.h"
#include "data/transforms/transform.h"

namespace kumo {

// The painted rectangle: the square around a uniformly drawn pixel, clipped to the image.
Rectangle DrawSquare(int64_t side, int64_t height, int64_t width, const SampleKey& key);

Result<std::unique_ptr<const Transform>> MakeCutout(const TransformRequest& request);

}  // namespace kumo
