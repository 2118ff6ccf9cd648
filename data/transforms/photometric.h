// Photometric distortion of training images (data.photometric): Liu et al. 2016, "SSD: Single shot
// multibox detector", after Howard 2013, "Some improvements on deep convolutional neural network
// based image classification". Brightness, contrast, saturation and hue change with probability 1/2
// each. Other formulas than colour_jitter.h's: contrast is a factor of the levels, saturation that
// of HSV. All pictures of a sample get the same draws.
//
// Values and pure functions; thread-safe.
#pragma once

#include <memory>

#include "data/samples/pixel_kernels.h"
#include "data/transforms/transform.h"

namespace kumo {

// Draws the changes: brightness of -32 to 32 levels; factors of .5 to 1.5 of the levels (contrast),
// either before or after the others, and of the saturation; a turn of the hue by -1/10 to 1/10 of
// the circle (18 of 180).
Distortion DrawDistortion(const SampleKey& key);

// Changes planes of red, green and blue, or one grey plane, which has no saturation and no hue.
void Distort(const Distortion& distortion, int64_t channels, std::span<const uint8_t> from,
             std::span<uint8_t> to);

Result<std::unique_ptr<const Transform>> MakePhotometric(const TransformRequest& request);

}  // namespace kumo
