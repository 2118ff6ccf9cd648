// Encoded images into pixels as a set's samples have them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "data/readers/image_decoder.h"
#include "data/resample.h"

namespace kumo {

// What all images of a set are made to be.
struct ImageTarget {
  // channels, height, width; the latter two 0 where each image keeps its own.
  std::vector<int64_t> extents;
  bool scale = false;  // those of another size, instead of refusing them
  // Of what is scaled: 0, or the length that MiddleOf takes, at least each wanted side's.
  int64_t shorter_side = 0;

  bool of_any_size() const { return extents[1] == 0; }
};

// Owned and used by one thread, which uses its memory again for each image.
class ImageMaker {
 public:
  // DataLoss or InvalidArgument where the file is damaged or cannot be taken (ImageDecoder);
  // FailedPrecondition where it is of another size and target.scale is not set. Requires a target
  // of one size.
  Status Make(std::span<const uint8_t> file, const ImageTarget& target, std::span<uint8_t> pixels);

  ImageDecoder& decoder() { return decoder_; }

 private:
  ImageDecoder decoder_;
  Resampler resampler_;
};

}  // namespace kumo
