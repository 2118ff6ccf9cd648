#include "data/readers/image_maker.h"

#include "common/job/fields.h"

namespace kumo {

Status ImageMaker::Make(std::span<const uint8_t> file, const ImageTarget& target,
                        std::span<uint8_t> pixels) {
  const std::vector<int64_t>& wanted = target.extents;
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, decoder_.ReadHeader(file));
  const bool same =
      target.shorter_side == 0 && header.height == wanted[1] && header.width == wanted[2];
  if (!target.scale && (!same || header.channels != wanted[0])) {
    const std::vector<int64_t> found = {header.channels, header.height, header.width};
    return FailedPrecondition(
        "it is " + ExtentsText(found) + ", the first image " + ExtentsText(wanted) +
        "; set data.image_size = " + ExtentsText(wanted) + " to have all of one size");
  }
  const int channels = static_cast<int>(wanted[0]);
  if (same) return decoder_.DecodeTo(file, header, channels, pixels);
  KUMO_ASSIGN_OR_RETURN(const std::span<const uint8_t> decoded, decoder_.Decode(file, channels));
  const Rectangle part =
      target.shorter_side == 0
          ? LargestWithin(header.height, header.width, wanted[1], wanted[2])
          : MiddleOf(header.height, header.width, wanted[1], wanted[2], target.shorter_side);
  resampler_.Resample(decoded, channels, header.height, header.width, part, wanted[1], wanted[2],
                      pixels);
  return OkStatus();
}

}  // namespace kumo
