// Resize: images that vary in size get the network's (data.image_size), the last step of an
// augmentation that began with images in their own sizes. The largest part with the wanted
// proportions, in the middle, or the whole image (data.resize), as always for samples with boxes.
//
// Values and pure functions; thread-safe.
#pragma once

#include <memory>

#include "data/samples/resample.h"
#include "data/transforms/transform.h"

namespace kumo {

// The interpolation of a training sample's scaled pictures (data.random_interpolation), one of all
// with equal probability: Liu et al. 2016, "SSD: Single shot multibox detector", as published in
// its program.
Interpolation DrawInterpolation(const SampleKey& key);

// Null if all pictures have one size, and the wanted one if whole images are scaled.
// FailedPrecondition if data.image_size is empty, or has other channels than the images.
Result<std::unique_ptr<const Transform>> MakeResize(const TransformRequest& request);

}  // namespace kumo
