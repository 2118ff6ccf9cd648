#include "data/transforms/resize.h"

#include <cstdint>
#include <vector>

#include "data/transforms/geometry.h"

namespace kumo {
namespace {

class Resize final : public GeometricTransform {
 public:
  Resize(const Fields& fields, const PictureSize& wanted, bool stretches, bool random_interpolation)
      : GeometricTransform(fields, wanted),
        wanted_(wanted),
        stretches_(stretches),
        random_interpolation_(random_interpolation) {}

  GeometricMap MapOf(const SampleKey& key, const Scene& scene) const override {
    GeometricMap map;
    const auto [height, width] = scene.size;
    map.from = stretches_ ? Rectangle{0, 0, height, width}
                          : LargestWithin(height, width, wanted_.height, wanted_.width);
    map.size = wanted_;
    if (random_interpolation_) map.interpolation = DrawInterpolation(key);
    return map;
  }

 private:
  const PictureSize wanted_;
  const bool stretches_;
  const bool random_interpolation_;
};

}  // namespace

Interpolation DrawInterpolation(const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kInterpolation);
  return static_cast<Interpolation>(rng.NextBelow(kInterpolations));
}

Result<std::unique_ptr<const Transform>> MakeResize(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const int picture = FindPicture(request.fields);
  if (picture < 0 || request.fields[picture].kind != FieldKind::kPicture) return transform;
  const std::vector<int64_t>& extents = request.fields[picture].extents;
  // Objects must not be lost.
  const bool stretches =
      request.data.resize == ResizeMode::kStretch || MovedFields(request.fields).boxes >= 0;
  if (extents[1] > 0 && !stretches) return transform;
  KUMO_ASSIGN_OR_RETURN(const PictureSize wanted, WantedSize(request));
  if (PictureSize{extents[1], extents[2]} == wanted) return transform;
  transform = std::make_unique<Resize>(request.fields, wanted, stretches,
                                       request.training && request.data.random_interpolation);
  return transform;
}

}  // namespace kumo
