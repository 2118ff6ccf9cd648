#include "data/transforms/object_crop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace kumo {
namespace {

constexpr int kTriesOfPart = 50;
constexpr double kLeastScale = 0.3;
constexpr double kMostAspect = 2;
// Least overlaps; none: the whole image.
constexpr std::array<std::optional<float>, 7> kKindsOfPart = {std::nullopt, 0.1f, 0.3f, 0.5f,
                                                              0.7f,         0.9f, 0.0f};

class ObjectCrop final : public GeometricTransform {
 public:
  explicit ObjectCrop(const Fields& fields) : GeometricTransform(fields, PictureSize{0, 0}) {}

  GeometricMap MapOf(const SampleKey& key, const Scene& scene) const override {
    GeometricMap map;
    map.from = DrawPart(scene, key);
    map.size = {map.from.height, map.from.width};
    return map;
  }
};

Rectangle AnyPart(const PictureSize& size, Rng* rng) {
  const auto uniform = [rng](double low, double high) {
    return low + (high - low) * static_cast<double>(rng->NextUniform());
  };
  const double scale = uniform(kLeastScale, 1);
  const double aspect =
      uniform(std::max(1 / kMostAspect, scale * scale), std::min(kMostAspect, 1 / (scale * scale)));
  const auto part_of = [](int64_t extent, double share) {
    const auto part = static_cast<int64_t>(static_cast<double>(extent) * share);
    return std::clamp<int64_t>(part, 1, extent);
  };
  const auto place = [rng](int64_t rest) {
    return static_cast<int64_t>(rng->NextBelow(static_cast<uint64_t>(rest) + 1));
  };
  Rectangle part;
  part.height = part_of(size.height, scale / std::sqrt(aspect));
  part.width = part_of(size.width, scale * std::sqrt(aspect));
  part.top = place(size.height - part.height);
  part.left = place(size.width - part.width);
  return part;
}

}  // namespace

// The first kind of a random order that succeeds is each of those that succeed with equal
// probability, and the others need not be tried.
Rectangle DrawPart(const Scene& scene, const SampleKey& key) {
  const Rectangle whole = {0, 0, scene.size.height, scene.size.width};
  if (scene.boxes.empty()) return whole;
  Rng rng = StreamOf(key, TransformStream::kObjectCrop);
  auto kinds = kKindsOfPart;
  for (size_t i = kinds.size() - 1; i > 0; --i) std::swap(kinds[i], kinds[rng.NextBelow(i + 1)]);
  for (const std::optional<float>& least : kinds) {
    if (!least) return whole;
    for (int i = 0; i < kTriesOfPart; ++i) {
      const Rectangle part = AnyPart(scene.size, &rng);
      const Box area = {static_cast<float>(part.left), static_cast<float>(part.top),
                        static_cast<float>(part.left + part.width),
                        static_cast<float>(part.top + part.height)};
      if (std::ranges::all_of(scene.boxes, [&](const Box& box) {
            return IntersectionOverUnion(area, box) >= *least;
          })) {
        return part;
      }
    }
  }
  return whole;
}

Result<std::unique_ptr<const Transform>> MakeObjectCrop(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  if (!request.training || !request.data.object_crop || FindPicture(request.fields) < 0) {
    return transform;
  }
  KUMO_RETURN_IF_ERROR(CheckInBytes(request));
  if (MovedFields(request.fields).boxes < 0) {
    return FailedPrecondition("data.object_crop = true requires boxes, but samples of " +
                              request.name + " have none; set it to false");
  }
  transform = std::make_unique<ObjectCrop>(request.fields);
  return transform;
}

}  // namespace kumo
