// Crops: centre crop of evaluated images, and random crops of training images with padding and
// mirroring or with a random size.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/samples/resample.h"
#include "data/transforms/geometry.h"
#include "data/transforms/transform.h"

namespace kumo {

// FailedPrecondition if images of these extents cannot be cropped from images with that shorter
// side.
Status CheckShorterSide(int64_t shorter_side, const std::vector<int64_t>& wanted);

// Centre crop of evaluated images to the network's size (data.shorter_side): the centre of the
// image scaled, with its proportions, to that shorter side. Only the cropped part is scaled.
// FailedPrecondition if the shorter side is below a side of the wanted size, or if images have
// other channels than data.image_size.
Result<std::unique_ptr<const Transform>> MakeCentreCrop(const TransformRequest& request);

// A window of an image. The default is the whole image.
struct Window {
  int top = 0;  // row and column of the image; negative values begin in the padding
  int left = 0;
  bool mirrored = false;

  // The map of a picture of `size`, with `outside` around it.
  GeometricMap MapOf(const PictureSize& size, std::span<const uint8_t> outside) const {
    return {.from = {top, left, size.height, size.width},
            .size = size,
            .mirrored = mirrored,
            .outside = outside};
  }
  bool operator==(const Window&) const = default;
};

// Draws one of the (2 pad + 1)^2 positions uniformly and, with `flip`, mirroring with probability
// 1/2, from the stream Rng(seed, kAugment, epoch, sample). Requires 0 <= pad <= 16384.
Window DrawWindow(int pad, bool flip, const SampleKey& key);

// Crop and flip: a random window of the image's own size, which may extend into padding, perhaps
// mirrored (data.crop_pad, data.pad_value, data.flip):
//
//   pixel(c, y, x) = source(c, top + y, left + x'),  x' = mirrored ? width - 1 - x : x
//
// The source is `pad_value` outside of its height x width. So an image is first cropped, then
// mirrored. FailedPrecondition if a window might contain nothing of an image.
Result<std::unique_ptr<const Transform>> MakeCropAndFlip(const TransformRequest& request);

// Ranges of the random crop.
struct CropRanges {
  double least_area = 0.08;  // fraction of the image's area
  double most_area = 1;
  double least_aspect = 3.0 / 4;  // width / height
  double most_aspect = 4.0 / 3;
};

// Draws a rectangle: up to ten times, the area uniformly and the aspect ratio uniformly in its
// logarithm, until the rectangle with rounded sides fits into the image; its position is then
// uniform. If all attempts fail, the largest centred rectangle with the allowed aspect ratio
// nearest to the image's. Requires an image of at least one pixel.
Rectangle DrawRectangle(const CropRanges& ranges, int64_t height, int64_t width,
                        const SampleKey& key);

// Random resized crop: a random rectangle of random area and aspect ratio, scaled to the network's
// size (data.crop_area, data.crop_aspect): Szegedy et al. 2015, "Going deeper with convolutions",
// section 6, drawn as by torchvision's RandomResizedCrop. FailedPrecondition if the images have
// other channels than data.image_size.
Result<std::unique_ptr<const Transform>> MakeRandomResizedCrop(const TransformRequest& request);

}  // namespace kumo
