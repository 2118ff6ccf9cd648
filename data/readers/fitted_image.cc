#include "data/readers/fitted_image.h"

#include <algorithm>

namespace kumo {

Status FittedImage::Decode(std::span<const uint8_t> file, std::span<const int64_t> extents,
                           std::span<uint8_t> out) {
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, decoder_.ReadHeader(file));
  KUMO_ASSIGN_OR_RETURN(const std::span<const uint8_t> pixels,
                        decoder_.Decode(file, static_cast<int>(extents[0])));
  if (header.height == extents[1] && header.width == extents[2]) {
    std::ranges::copy(pixels, out.begin());
  } else {
    resampler_.Resample(pixels, extents[0], header.height, header.width,
                        LargestWithin(header.height, header.width, extents[1], extents[2]),
                        extents[1], extents[2], out);
  }
  return OkStatus();
}

}  // namespace kumo
