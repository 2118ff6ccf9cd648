#include "data/transforms/cutout.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/transforms/geometry.h"

namespace kumo {
namespace {

class Cutout final : public Transform {
 public:
  Cutout(const Fields& fields, int64_t side, std::vector<uint8_t> colour)
      : pictures_(MovedFields(fields).pictures), side_(side), colour_(std::move(colour)) {}

  void Apply(const SampleKey& key, Sample* sample) const override {
    for (const int picture : pictures_) Paint(key, picture, sample);
  }

 private:
  void Paint(const SampleKey& key, int picture, Sample* sample) const {
    const std::span<const uint8_t> from = sample->pixels(picture);
    const int64_t channels = sample->extents(picture)[0];
    const int64_t height = sample->extents(picture)[1];
    const int64_t width = sample->extents(picture)[2];
    const std::span<std::byte> room = sample->Make(picture, from.size());
    const std::span<uint8_t> pixels(reinterpret_cast<uint8_t*>(room.data()), room.size());
    std::ranges::copy(from, pixels.begin());
    const Rectangle square = DrawSquare(side_, height, width, key);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = square.top; y < square.top + square.height; ++y) {
        std::ranges::fill(pixels.subspan((c * height + y) * width + square.left, square.width),
                          colour_[c]);
      }
    }
  }

  const std::vector<int> pictures_;  // fields
  const int64_t side_;
  const std::vector<uint8_t> colour_;  // by channel
};

}  // namespace

Rectangle DrawSquare(int64_t side, int64_t height, int64_t width, const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kCutout);
  // First pixel and length along an axis.
  const auto place = [&rng, side](int64_t extent) {
    const int64_t begin =
        static_cast<int64_t>(rng.NextBelow(static_cast<uint64_t>(extent))) - side / 2;
    const int64_t first = std::max<int64_t>(0, begin);
    return std::pair(first, std::min(extent, begin + side) - first);
  };
  const auto [top, rows] = place(height);
  const auto [left, columns] = place(width);
  return {top, left, rows, columns};
}

Result<std::unique_ptr<const Transform>> MakeCutout(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const Experiment::Data& data = request.data;
  if (!request.training || data.cutout == 0 || FindPicture(request.fields) < 0) return transform;
  int64_t channels = 0;
  for (const Field& field : request.fields) {
    if (field.kind == FieldKind::kPicture) channels = std::max(channels, field.extents[0]);
  }
  transform = std::make_unique<Cutout>(request.fields, data.cutout, MeanColour(data, channels));
  return transform;
}

}  // namespace kumo
