#include "data/transforms/cutout.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kumo {
namespace {

constexpr uint8_t kGrey = 128;

class Cutout final : public Transform {
 public:
  Cutout(int image, int64_t side, std::vector<uint8_t> colour)
      : image_(image), side_(side), colour_(std::move(colour)) {}

  void Apply(const SampleKey& key, Sample* sample) const override {
    const std::span<const uint8_t> from = sample->pixels(image_);
    const int64_t channels = sample->extents(image_)[0];
    const int64_t height = sample->extents(image_)[1];
    const int64_t width = sample->extents(image_)[2];
    const std::span<std::byte> room = sample->Make(image_, from.size());
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

 private:
  const int image_;  // field
  const int64_t side_;
  const std::vector<uint8_t> colour_;  // by channel
};

// The value that data.mean maps to 0.
uint8_t LevelOf(double mean, double scale) {
  return static_cast<uint8_t>(std::lround(std::clamp(mean / scale, 0.0, 255.0)));
}

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
  const int image = FindField(request.fields, kImageField);
  if (!request.training || data.cutout == 0 || image < 0) return transform;
  const auto channels = static_cast<size_t>(request.fields[image].extents[0]);
  std::vector<uint8_t> colour(channels, kGrey);
  for (size_t c = 0; c < std::min(channels, data.mean.size()); ++c) {
    colour[c] = LevelOf(data.mean[c], data.scale);
  }
  transform = std::make_unique<Cutout>(image, data.cutout, std::move(colour));
  return transform;
}

}  // namespace kumo
