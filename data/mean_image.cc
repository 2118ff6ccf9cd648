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

Result<std::vector<float>> MeanImage(const Dataset& dataset) {
  const int image = FindPicture(dataset.fields());
  if (image < 0 || dataset.fields()[image].type != NumberType::kUint8) {
    return FailedPrecondition(dataset.name() +
                              " has no images in bytes, so data.subtract_mean has no mean image");
  }
  const int64_t size = dataset.fields()[image].numbers();
  if (size == 0) {
    return FailedPrecondition("images of " + dataset.name() +
                              " have no fixed size, so data.subtract_mean has no mean image; set "
                              "data.mean instead");
  }
  std::vector<uint64_t> sums(size);
  KUMO_RETURN_IF_ERROR(ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    AddImage(sample.pixels(image).data(), size, sums.data());
  }));
  std::vector<float> mean(size);
  for (int64_t i = 0; i < size; ++i) {
    mean[i] =
        static_cast<float>(static_cast<double>(sums[i]) / static_cast<double>(dataset.size()));
  }
  return mean;
}

}  // namespace kumo
