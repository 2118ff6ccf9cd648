#include "data/transforms/crops.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace kumo {

namespace {

class CentreCrop final : public Transform {
 public:
  CentreCrop(int image, std::vector<int64_t> wanted, int64_t shorter_side)
      : image_(image), wanted_(std::move(wanted)), shorter_side_(shorter_side) {}

  void Apply(const SampleKey& /*key*/, Sample* sample) const override {
    const int64_t height = sample->extents(image_)[1];
    const int64_t width = sample->extents(image_)[2];
    const std::span<const uint8_t> image = sample->pixels(image_);
    sample->resampler().Resample(image, wanted_[0], height, width,
                                 MiddleOf(height, width, wanted_[1], wanted_[2], shorter_side_),
                                 wanted_[1], wanted_[2], sample->MakePixels(image_, wanted_));
  }
  void ChangeFields(Fields* fields) const override { (*fields)[image_].extents = wanted_; }

 private:
  const int image_;  // field
  const std::vector<int64_t> wanted_;
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
  const int image = FindField(request.fields, kImageField);
  if (request.training || shorter == 0 || image < 0) return transform;
  KUMO_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, WantedExtents(request, request.fields[image]));
  KUMO_RETURN_IF_ERROR(CheckShorterSide(shorter, wanted).WithContext(request.name));
  transform = std::make_unique<CentreCrop>(image, std::move(wanted), shorter);
  return transform;
}

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

// Row by row: a row of a window is padding, a piece of the image, and padding.
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
  // A window that begins in the padding still contains some of the image.
  const int64_t most = std::min(extents[1], extents[2]) - 1;
  if (request.data.crop_pad > most) {
    return FailedPrecondition(
        "data.crop_pad = " + std::to_string(request.data.crop_pad) + " is too large for " +
        request.name + ", whose images are " + ExtentsText(extents) +
        ": a window might contain nothing of one; set it to 0 .. " + std::to_string(most));
  }
  transform = std::make_unique<CropAndFlip>(image, extents, request.data);
  return transform;
}

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
