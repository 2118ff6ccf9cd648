#include "data/transforms/random_resized_crop.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kumo {
namespace {

constexpr int kTries = 10;

class RandomResizedCrop final : public Transform {
 public:
  RandomResizedCrop(int image, std::vector<int64_t> wanted, const CropRanges& ranges)
      : image_(image), wanted_(std::move(wanted)), ranges_(ranges) {}

  void Apply(const SampleKey& key, Sample* sample) const override {
    const std::span<const uint8_t> image = sample->pixels(image_);
    const int64_t height = sample->extents(image_)[1];
    const int64_t width = sample->extents(image_)[2];
    const Rectangle from = DrawRectangle(ranges_, height, width, key);
    sample->resampler().Resample(image, wanted_[0], height, width, from, wanted_[1], wanted_[2],
                                 sample->MakePixels(image_, wanted_));
  }
  void ChangeFields(Fields* fields) const override { (*fields)[image_].extents = wanted_; }

 private:
  const int image_;  // field
  const std::vector<int64_t> wanted_;
  const CropRanges ranges_;
};

Rectangle InTheMiddle(int64_t height, int64_t width, int64_t of_height, int64_t of_width) {
  height = std::clamp<int64_t>(height, 1, of_height);
  width = std::clamp<int64_t>(width, 1, of_width);
  return {(of_height - height) / 2, (of_width - width) / 2, height, width};
}

}  // namespace

Rectangle DrawRectangle(const CropRanges& ranges, int64_t height, int64_t width,
                        const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kRandomResizedCrop);
  const auto uniform = [&rng](double low, double high) {
    return low + (high - low) * static_cast<double>(rng.NextUniform());
  };
  const auto rows = static_cast<double>(height);
  const auto columns = static_cast<double>(width);
  for (int i = 0; i < kTries; ++i) {
    const double area = rows * columns * uniform(ranges.least_area, ranges.most_area);
    const double aspect =
        std::exp(uniform(std::log(ranges.least_aspect), std::log(ranges.most_aspect)));
    const int64_t w = std::llround(std::sqrt(area * aspect));
    const int64_t h = std::llround(std::sqrt(area / aspect));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    Rectangle drawn{0, 0, h, w};
    drawn.top = static_cast<int64_t>(rng.NextBelow(static_cast<uint64_t>(height - h) + 1));
    drawn.left = static_cast<int64_t>(rng.NextBelow(static_cast<uint64_t>(width - w) + 1));
    return drawn;
  }
  const double aspect = columns / rows;
  if (aspect < ranges.least_aspect) {
    return InTheMiddle(std::llround(columns / ranges.least_aspect), width, height, width);
  }
  if (aspect > ranges.most_aspect) {
    return InTheMiddle(height, std::llround(rows * ranges.most_aspect), height, width);
  }
  return {0, 0, height, width};
}

Result<std::unique_ptr<const Transform>> MakeRandomResizedCrop(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const std::vector<double>& area = request.data.crop_area;
  const std::vector<double>& aspect = request.data.crop_aspect;
  const int image = FindField(request.fields, kImageField);
  if (!request.training || area.empty() || image < 0) return transform;
  KUMO_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, WantedExtents(request, request.fields[image]));
  transform = std::make_unique<RandomResizedCrop>(
      image, std::move(wanted),
      CropRanges{area.front(), area.back(), aspect.front(), aspect.back()});
  return transform;
}

}  // namespace kumo
