#include "data/transforms/expand.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace kumo {
namespace {

class Expand final : public GeometricTransform {
 public:
  Expand(const Fields& fields, double most, std::vector<uint8_t> colour)
      : GeometricTransform(fields, PictureSize{0, 0}), most_(most), colour_(std::move(colour)) {}

  GeometricMap MapOf(const SampleKey& key, const Scene& scene) const override {
    GeometricMap map;
    map.from = DrawCanvas(most_, scene.size, key);
    map.size = {map.from.height, map.from.width};
    map.outside = colour_;
    return map;
  }

 private:
  const double most_;
  const std::vector<uint8_t> colour_;  // by channel
};

}  // namespace

Rectangle DrawCanvas(double most, const PictureSize& size, const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kExpand);
  if (rng.NextBelow(2) == 0) return {0, 0, size.height, size.width};
  const double ratio = 1 + (most - 1) * static_cast<double>(rng.NextUniform());
  Rectangle canvas;
  canvas.height = static_cast<int64_t>(static_cast<double>(size.height) * ratio);
  canvas.width = static_cast<int64_t>(static_cast<double>(size.width) * ratio);
  const auto place = [&rng](int64_t extent, int64_t of_canvas) {
    return -static_cast<int64_t>(rng.NextBelow(static_cast<uint64_t>(of_canvas - extent) + 1));
  };
  canvas.top = place(size.height, canvas.height);
  canvas.left = place(size.width, canvas.width);
  return canvas;
}

Result<std::unique_ptr<const Transform>> MakeExpand(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const int picture = FindPicture(request.fields);
  if (!request.training || request.data.expand <= 1 || picture < 0) return transform;
  KUMO_RETURN_IF_ERROR(CheckInBytes(request));
  transform =
      std::make_unique<Expand>(request.fields, request.data.expand,
                               MeanColour(request.data, request.fields[picture].extents[0]));
  return transform;
}

}  // namespace kumo
