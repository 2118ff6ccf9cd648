// Expand: with probability 1/2 a training image is placed at a random position of a larger canvas
// of the mean colour, so that its objects become small (data.expand): Liu et al. 2016, "SSD: Single
// shot multibox detector", section 3.6. The canvas is not made if the image is then scaled
// (geometry.h).
//
// Values and pure functions; thread-safe.
#pragma once

#include <memory>

#include "data/transforms/geometry.h"
#include "data/transforms/transform.h"

namespace kumo {

// The canvas, in pixels of the image: the image itself, or r times as high and wide, rounded down,
// r uniform in [1, most) and the position uniform. Requires most >= 1.
Rectangle DrawCanvas(double most, const PictureSize& size, const SampleKey& key);

Result<std::unique_ptr<const Transform>> MakeExpand(const TransformRequest& request);

}  // namespace kumo
