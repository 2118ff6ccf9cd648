// Object crop: a random part of a training image that overlaps with all its objects by a random
// measure (data.object_crop): Liu et al. 2016, "SSD: Single shot multibox detector", section 3.6.
// Objects whose centre lies outside are dropped, the others are clipped.
//
// Values and pure functions; thread-safe.
#pragma once

#include <memory>

#include "data/transforms/geometry.h"
#include "data/transforms/transform.h"

namespace kumo {

// Draws one of seven kinds of parts: the whole image; a part whose overlap (intersection over
// union) with each box is at least .1, .3, .5, .7 or .9; any part. The kinds for which a part
// is found are equally likely. A part of an image of H x W is tried up to 50 times:
//
//   scale s uniform in [.3, 1), aspect a uniform in [max(1/2, s^2), min(2, 1/s^2)),
//   height H s / sqrt(a) and width W s sqrt(a), rounded down, at a uniform position
//
// The whole image if there are no boxes.
Rectangle DrawPart(const Scene& scene, const SampleKey& key);

// FailedPrecondition if samples have no boxes.
Result<std::unique_ptr<const Transform>> MakeObjectCrop(const TransformRequest& request);

}  // namespace kumo
