#include "data/transforms/photometric.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/transforms/geometry.h"

namespace kumo {
namespace {

constexpr int32_t kUnit = 1 << 16;

class Photometric final : public Transform {
 public:
  explicit Photometric(const Fields& fields) : pictures_(MovedFields(fields).pictures) {}

  void Apply(const SampleKey& key, Sample* sample) const override {
    const Distortion distortion = DrawDistortion(key);
    if (distortion == Distortion()) return;
    for (const int picture : pictures_) {
      const std::span<const uint8_t> from = sample->pixels(picture);
      const std::span<std::byte> room = sample->Make(picture, from.size());
      Distort(distortion, sample->extents(picture)[0], from,
              {reinterpret_cast<uint8_t*>(room.data()), room.size()});
    }
  }

 private:
  const std::vector<int> pictures_;  // fields
};

}  // namespace

// Each change takes two numbers of the stream, whether it is made or not.
Distortion DrawDistortion(const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kPhotometric);
  const auto coin = [&rng] { return rng.NextUint32() >> 31 == 1; };
  // Uniform in [low, high], or `neutral`.
  const auto draw = [&](int32_t low, int32_t high, int32_t neutral) {
    const bool changes = coin();
    const auto values = static_cast<uint64_t>(high - low) + 1;
    const auto drawn = static_cast<int32_t>((rng.NextUint32() * values) >> 32);
    return changes ? low + drawn : neutral;
  };
  Distortion distortion;
  distortion.brightness = draw(-32, 32, 0);
  const bool contrast_first = coin();
  const int32_t contrast = draw(kUnit / 2, kUnit * 3 / 2, kUnit);
  (contrast_first ? distortion.contrast_first : distortion.contrast_last) = contrast;
  distortion.saturation =
      static_cast<float>(draw(kUnit / 2, kUnit * 3 / 2, kUnit)) / static_cast<float>(kUnit);
  constexpr int32_t kCircle = 6 * kUnit;
  const int32_t turn = draw(-kCircle / 10, kCircle / 10, 0);
  distortion.turn =
      static_cast<float>(turn < 0 ? turn + kCircle : turn) / static_cast<float>(kUnit);
  return distortion;
}

void Distort(const Distortion& distortion, int64_t channels, std::span<const uint8_t> from,
             std::span<uint8_t> to) {
  if (channels == kColours) {
    KUMO_AT_ISA(DetectIsa(), kPixels)
        .distort(from.data(), std::ssize(from) / kColours, distortion, to.data());
    return;
  }
  std::array<uint8_t, 256> levels{};
  for (int32_t level = 0; level < std::ssize(levels); ++level) {
    const auto clipped = [](int32_t value) { return std::clamp(value, 0, 255); };
    const auto times = [&](int32_t value, int32_t factor) {
      return clipped((value * factor + kUnit / 2) / kUnit);
    };
    levels[level] = static_cast<uint8_t>(
        times(times(clipped(level + distortion.brightness), distortion.contrast_first),
              distortion.contrast_last));
  }
  std::ranges::transform(from, to.begin(), [&](uint8_t level) { return levels[level]; });
}

Result<std::unique_ptr<const Transform>> MakePhotometric(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  if (request.training && request.data.photometric && FindPicture(request.fields) >= 0) {
    transform = std::make_unique<Photometric>(request.fields);
  }
  return transform;
}

}  // namespace kumo
