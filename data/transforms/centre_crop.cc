#include "data/transforms/centre_crop.h"

#include <algorithm>
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
                            " is too little to cut images of " + ExtentsText(wanted) +
                            " out of others; set it to 0, or " + std::to_string(least) +
                            " and more");
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

}  // namespace kumo
