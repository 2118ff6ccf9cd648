#include "data/readers/image_maker.h"

#include <algorithm>

#include "common/job/fields.h"

namespace kumo {

Status ImageMaker::Make(std::span<const uint8_t> file, const ImageTarget& target,
                        std::span<uint8_t> pixels) {
  const std::vector<int64_t>& wanted = target.extents;
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, decoder_.ReadHeader(file));
  const bool same = header.height == wanted[1] && header.width == wanted[2];
  if (!target.scale && (!same || header.channels != wanted[0])) {
    const std::vector<int64_t> found = {header.channels, header.height, header.width};
    return InvalidArgument("it is " + ExtentsText(found) + ", the first image " +
                           ExtentsText(wanted) + "; set data.image_size = " + ExtentsText(wanted) +
                           " to have all of one size");
  }
  KUMO_ASSIGN_OR_RETURN(const std::span<const uint8_t> decoded,
                        decoder_.Decode(file, static_cast<int>(wanted[0])));
  if (same) {
    std::ranges::copy(decoded, pixels.begin());
  } else {
    resampler_.Resample(decoded, wanted[0], header.height, header.width,
                        LargestWithin(header.height, header.width, wanted[1], wanted[2]), wanted[1],
                        wanted[2], pixels);
  }
  return OkStatus();
}

Result<ImageMaker::Original> ImageMaker::MakeOriginal(std::span<const uint8_t> file,
                                                      const ImageTarget& target) {
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, decoder_.ReadHeader(file));
  const int64_t channels = target.extents[0];
  KUMO_ASSIGN_OR_RETURN(const std::span<const uint8_t> pixels,
                        decoder_.Decode(file, static_cast<int>(channels)));
  return Original{{channels, header.height, header.width}, pixels};
}

}  // namespace kumo
