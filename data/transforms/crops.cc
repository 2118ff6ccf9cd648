#include "data/transforms/crops.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "data/transforms/geometry.h"
#include "data/transforms/resize.h"

namespace kumo {

namespace {

class CentreCrop final : public GeometricTransform {
 public:
  CentreCrop(const Fields& fields, const PictureSize& wanted, int64_t shorter_side)
      : GeometricTransform(fields, wanted), wanted_(wanted), shorter_side_(shorter_side) {}

  GeometricMap MapOf(const SampleKey& /*key*/, const Scene& scene) const override {
    const Rectangle middle =
        MiddleOf(scene.size.height, scene.size.width, wanted_.height, wanted_.width, shorter_side_);
    return {.from = middle, .size = wanted_};
  }

 private:
  const PictureSize wanted_;
  const int64_t shorter_side_;
};

}  // namespace

Status CheckShorterSide(int64_t shorter_side, const std::vector<int64_t>& wanted) {
  const int64_t least = std::max(wanted[1], wanted[2]);
  if (shorter_side >= least) return OkStatus();
  return FailedPrecondition("data.shorter_side = " + std::to_string(shorter_side) +
                            " is too small to crop images of " + ExtentsText(wanted) +
                            "; set it to 0, or at least to " + std::to_string(least));
}

Result<std::unique_ptr<const Transform>> MakeCentreCrop(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const int64_t shorter = request.data.shorter_side;
  const int picture = FindPicture(request.fields);
  if (request.training || shorter == 0 || picture < 0) return transform;
  KUMO_RETURN_IF_ERROR(CheckInBytes(request));
  // Objects outside the crop would not be evaluated, though `kumo detect` and exported models take
  // the whole image.
  if (MovedFields(request.fields).boxes >= 0) {
    return FailedPrecondition("data.shorter_side = " + std::to_string(shorter) +
                              " crops images, but samples of " + request.name +
                              " have boxes; set it to 0, which scales whole images to "
                              "data.image_size");
  }
  KUMO_ASSIGN_OR_RETURN(const PictureSize wanted, WantedSize(request));
  const int64_t channels = request.fields[picture].extents[0];
  KUMO_RETURN_IF_ERROR(
      CheckShorterSide(shorter, {channels, wanted.height, wanted.width}).WithContext(request.name));
  transform = std::make_unique<CentreCrop>(request.fields, wanted, shorter);
  return transform;
}

namespace {

class CropAndFlip final : public GeometricTransform {
 public:
  CropAndFlip(const Fields& fields, const Experiment::Data& data)
      : GeometricTransform(fields, std::nullopt),
        pad_(data.crop_pad),
        flip_(data.flip),
        pad_value_(static_cast<uint8_t>(data.pad_value)) {}

  GeometricMap MapOf(const SampleKey& key, const Scene& scene) const override {
    return DrawWindow(pad_, flip_, key).MapOf(scene.size, std::span(&pad_value_, 1));
  }

 private:
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

Result<std::unique_ptr<const Transform>> MakeCropAndFlip(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const int picture = FindPicture(request.fields);
  if (!request.training || picture < 0) return transform;
  if (request.data.crop_pad == 0 && !request.data.flip) return transform;
  KUMO_RETURN_IF_ERROR(CheckInBytes(request));
  const std::vector<int64_t>& extents = request.fields[picture].extents;
  // A window that begins in the padding still contains some of the image.
  const int64_t most = std::min(extents[1], extents[2]) - 1;
  if (request.data.crop_pad > most) {
    return FailedPrecondition(
        "data.crop_pad = " + std::to_string(request.data.crop_pad) + " is too large for " +
        request.name + ", whose images are " + ExtentsText(extents) +
        ": a window might contain no pixel of an image; set it to 0 .. " + std::to_string(most));
  }
  transform = std::make_unique<CropAndFlip>(request.fields, request.data);
  return transform;
}

namespace {

constexpr int kTries = 10;

class RandomResizedCrop final : public GeometricTransform {
 public:
  RandomResizedCrop(const Fields& fields, const PictureSize& wanted, const Experiment::Data& data)
      : GeometricTransform(fields, wanted),
        wanted_(wanted),
        ranges_{data.crop_area.front(), data.crop_area.back(), data.crop_aspect.front(),
                data.crop_aspect.back()},
        random_interpolation_(data.random_interpolation) {}

  GeometricMap MapOf(const SampleKey& key, const Scene& scene) const override {
    GeometricMap map;
    map.from = DrawRectangle(ranges_, scene.size.height, scene.size.width, key);
    map.size = wanted_;
    if (random_interpolation_) map.interpolation = DrawInterpolation(key);
    return map;
  }

 private:
  const PictureSize wanted_;
  const CropRanges ranges_;
  const bool random_interpolation_;
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
  const bool asked = request.training && !request.data.crop_area.empty();
  if (!asked || FindPicture(request.fields) < 0) return transform;
  KUMO_RETURN_IF_ERROR(CheckInBytes(request));
  KUMO_ASSIGN_OR_RETURN(const PictureSize wanted, WantedSize(request));
  transform = std::make_unique<RandomResizedCrop>(request.fields, wanted, request.data);
  return transform;
}

}  // namespace kumo
