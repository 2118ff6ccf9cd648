#include "data/mean_image.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

namespace kumo {
namespace {

constexpr int64_t kSamplesAtOnce = 64;

// For the compiler's vectoriser, as in pixel_transform.cc.
void AddImage(const uint8_t* __restrict image, int64_t size, uint64_t* __restrict sums) {
  for (int64_t i = 0; i < size; ++i) sums[i] += image[i];
}

}  // namespace

Result<std::vector<float>> MeanImage(const Dataset& dataset) {
  const int64_t size = dataset.shape().size();
  std::vector<uint64_t> sums(size);
  if (const std::optional<RawSamples> raw = dataset.raw()) {
    for (int64_t first = 0; first < dataset.size(); first += kSamplesAtOnce) {
      const int64_t count = std::min(kSamplesAtOnce, dataset.size() - first);
      const std::span images = raw->pixels.subspan(first * size, count * size);
      for (int64_t k = 0; k < count; ++k) AddImage(images.data() + k * size, size, sums.data());
      dataset.LetGo(images);
    }
  } else {
    std::vector<uint8_t> pixels(kSamplesAtOnce * size);
    std::vector<int32_t> labels(kSamplesAtOnce);
    std::vector<int64_t> indices(kSamplesAtOnce);
    for (int64_t first = 0; first < dataset.size(); first += kSamplesAtOnce) {
      const int64_t count = std::min(kSamplesAtOnce, dataset.size() - first);
      std::iota(indices.begin(), indices.end(), first);
      KUMO_RETURN_IF_ERROR(dataset.Read(std::span(indices).first(count),
                                        std::span(pixels).first(count * size),
                                        std::span(labels).first(count)));
      for (int64_t k = 0; k < count; ++k) AddImage(pixels.data() + k * size, size, sums.data());
    }
  }
  std::vector<float> mean(size);
  for (int64_t i = 0; i < size; ++i) {
    mean[i] =
        static_cast<float>(static_cast<double>(sums[i]) / static_cast<double>(dataset.size()));
  }
  return mean;
}

}  // namespace kumo
