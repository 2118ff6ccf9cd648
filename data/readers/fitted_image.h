// An image's file as pixels of a wanted size: decoded, grey or coloured as wanted, and, where its
// size is another, cut to the wanted proportions in its middle and scaled.
//
// Owned and used by one thread, which uses its memory again for each image.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/status.h"
#include "data/readers/image_decoder.h"
#include "data/resample.h"

namespace kumo {

class FittedImage {
 public:
  // extents: channels (1 or 3), height, width; out has as many bytes. The errors of ImageDecoder.
  Status Decode(std::span<const uint8_t> file, std::span<const int64_t> extents,
                std::span<uint8_t> out);
  Result<ImageHeader> ReadHeader(std::span<const uint8_t> file) {
    return decoder_.ReadHeader(file);
  }

 private:
  ImageDecoder decoder_;
  Resampler resampler_;
};

}  // namespace kumo
