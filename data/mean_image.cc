#include "data/mean_image.h"

#include <cstdint>

#include "data/transforms/transform.h"

namespace kumo {
namespace {

// A loop for the compiler's vectoriser (see the options in CMakeLists.txt).
void AddImage(const uint8_t* __restrict image, int64_t size, uint64_t* __restrict sums) {
  for (int64_t i = 0; i < size; ++i) sums[i] += image[i];
}

}  // namespace

Result<std::vector<std::vector<float>>> MeanImages(const Dataset& dataset) {
  const Fields& fields = dataset.fields();
  const std::vector<int> pictures = FindPictures(fields);
  std::vector<std::vector<uint64_t>> sums(fields.size());
  for (const int picture : pictures) {
    if (fields[picture].type != NumberType::kUint8) {
      return FailedPrecondition(dataset.name() +
                                " has no images in bytes, so data.subtract_mean has no mean image");
    }
    if (fields[picture].numbers() == 0) {
      return FailedPrecondition("images of " + dataset.name() +
                                " have no fixed size, so data.subtract_mean has no mean image; set "
                                "data.mean instead");
    }
    sums[picture].resize(fields[picture].numbers());
  }
  if (pictures.empty()) {
    return FailedPrecondition(dataset.name() +
                              " has no images, so data.subtract_mean has no mean image");
  }
  KUMO_RETURN_IF_ERROR(ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    for (const int picture : pictures) {
      AddImage(sample.pixels(picture).data(), std::ssize(sums[picture]), sums[picture].data());
    }
  }));
  std::vector<std::vector<float>> means(fields.size());
  for (size_t f = 0; f < fields.size(); ++f) {
    for (const uint64_t sum : sums[f]) {
      means[f].push_back(
          static_cast<float>(static_cast<double>(sum) / static_cast<double>(dataset.size())));
    }
  }
  return means;
}

}  // namespace kumo
