// A random window of an image, of the image's own size, that may begin or end in padding around it,
// and may be mirrored (data.crop_pad, data.pad_value, data.flip):
//
//   pixel(c, y, x) = source(c, top + y, left + x'),  x' = mirrored ? width - 1 - x : x
//
// where the source is `pad_value` outside its own height x width. So an image is cropped, then
// mirrored.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/transforms/transform.h"

namespace kumo {

// Which part of an image is taken. The default: the image as it is.
struct Window {
  int top = 0;   // rows and columns of the image; where they are negative the window begins in
  int left = 0;  // the padding
  bool mirrored = false;

  bool operator==(const Window&) const = default;
};

// Uniform among the (2 pad + 1)^2 places, mirrored or, with `flip`, with probability 1/2 not, of
// the stream Rng(seed, kAugment, epoch, sample). Requires 0 <= pad <= 16384.
Window DrawWindow(int pad, bool flip, const SampleKey& key);

// The pixels of a window. Requires extents of channels x height x width, image and cut of so many.
void CutOut(std::span<const int64_t> extents, std::span<const uint8_t> image, const Window& window,
            uint8_t pad_value, std::span<uint8_t> cut);

// FailedPrecondition where a window might show nothing of an image.
Result<std::unique_ptr<const Transform>> MakeCropAndFlip(const TransformRequest& request);

}  // namespace kumo
