// A random rectangle of an image, of a random share of its area and random proportions, scaled to
// the size that the network takes (data.crop_area, data.crop_aspect): Szegedy et al. 2015, "Going
// deeper with convolutions", section 6, with torchvision's way to draw it (RandomResizedCrop).
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "data/resample.h"
#include "data/transforms/transform.h"

namespace kumo {

struct CropRanges {
  double least_area = 0.08;  // shares of the image's
  double most_area = 1;
  double least_aspect = 3.0 / 4;  // width / height
  double most_aspect = 4.0 / 3;
};

// Up to ten times the area is drawn uniformly and the aspect uniformly in its logarithm, until the
// rectangle, its sides rounded to whole pixels, lies in the image; its place is then uniform. Else
// the largest one in the image's middle whose aspect is the nearest to the image's own. Requires an
// image of at least a pixel.
Rectangle DrawRectangle(const CropRanges& ranges, int64_t height, int64_t width,
                        const SampleKey& key);

// FailedPrecondition where the images have other channels than data.image_size.
Result<std::unique_ptr<const Transform>> MakeRandomResizedCrop(const TransformRequest& request);

}  // namespace kumo
