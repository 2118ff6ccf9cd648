#include "data/transforms/crop_and_flip.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kumo {
namespace {

class CropAndFlip final : public Transform {
 public:
  CropAndFlip(int image, std::vector<int64_t> extents, const Experiment::Data& data)
      : image_(image),
        extents_(std::move(extents)),
        pad_(data.crop_pad),
        flip_(data.flip),
        pad_value_(static_cast<uint8_t>(data.pad_value)) {}

  void Apply(const SampleKey& key, Sample* sample) const override {
    const Window window = DrawWindow(pad_, flip_, key);
    if (window == Window()) return;
    const std::span<const uint8_t> image = sample->pixels(image_);
    const std::span<std::byte> cut = sample->Make(image_, image.size());
    CutOut(extents_, image, window, pad_value_,
           {reinterpret_cast<uint8_t*>(cut.data()), cut.size()});
  }

 private:
  const int image_;  // field
  const std::vector<int64_t> extents_;
  const int pad_;
  const bool flip_;
  const uint8_t pad_value_;
};

}  // namespace

Window DrawWindow(int pad, bool flip, const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kCropAndFlip);
  const auto place = [&] {
    return static_cast<int>(rng.NextBelow(2 * static_cast<uint64_t>(pad) + 1)) - pad;
  };
  Window window;
  window.top = place();
  window.left = place();
  window.mirrored = flip && rng.NextBelow(2) == 1;
  return window;
}

// Row by row: what a window has of a row is padding, then a piece of the image, then padding.
void CutOut(std::span<const int64_t> extents, std::span<const uint8_t> image, const Window& window,
            uint8_t pad_value, std::span<uint8_t> cut) {
  const int64_t height = extents[1];
  const int64_t width = extents[2];
  std::ranges::fill(cut, pad_value);
  const int64_t first_row = std::clamp<int64_t>(-window.top, 0, height);
  const int64_t end_row = std::clamp<int64_t>(height - window.top, first_row, height);
  const int64_t first = std::clamp<int64_t>(-window.left, 0, width);
  const int64_t end = std::clamp<int64_t>(width - window.left, first, width);
  for (int64_t c = 0; c < extents[0]; ++c) {
    for (int64_t y = first_row; y < end_row; ++y) {
      uint8_t* const row = cut.data() + (c * height + y) * width;
      const uint8_t* const from =
          image.data() + ((c * height + window.top + y) * width + window.left + first);
      if (window.mirrored) {
        std::reverse_copy(from, from + (end - first), row + width - end);
      } else {
        std::copy(from, from + (end - first), row + first);
      }
    }
  }
}

Result<std::unique_ptr<const Transform>> MakeCropAndFlip(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const int image = FindField(request.fields, kImageField);
  if (!request.training || image < 0) return transform;
  if (request.data.crop_pad == 0 && !request.data.flip) return transform;
  const std::vector<int64_t>& extents = request.fields[image].extents;
  // A window that begins in the padding holds some of the image all the same.
  const int64_t most = std::min(extents[1], extents[2]) - 1;
  if (request.data.crop_pad > most) {
    return FailedPrecondition(
        "data.crop_pad = " + std::to_string(request.data.crop_pad) + " is too much for " +
        request.name + ", whose images are " + ExtentsText(extents) +
        ": a window might show nothing of one; set it to 0 .. " + std::to_string(most));
  }
  transform = std::make_unique<CropAndFlip>(image, extents, request.data);
  return transform;
}

}  // namespace kumo
