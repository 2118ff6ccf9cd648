#include "data/data_summary.h"

#include <cmath>
#include <cstring>

namespace kumo {

Result<DataSummary> Summarise(const Dataset& dataset) {
  const int image = FindField(dataset.fields(), kImageField);
  const int label = FindField(dataset.fields(), kLabelField);
  if (image < 0 || label < 0) {
    return FailedPrecondition(dataset.name() + ": its samples are not images with labels");
  }
  const int64_t channels = dataset.fields()[image].extents[0];
  const int64_t plane = dataset.fields()[image].numbers() / channels;
  DataSummary summary;
  summary.of_class.resize(dataset.classes());
  // Whole numbers: exact, however many there are.
  std::vector<uint64_t> sums(channels), squares(channels);
  KUMO_RETURN_IF_ERROR(ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    int32_t number = 0;
    std::memcpy(&number, sample.field(label).data(), sizeof number);
    ++summary.of_class[number];
    const std::span<const uint8_t> pixels = sample.pixels(image);
    for (int64_t c = 0; c < channels; ++c) {
      uint64_t sum = 0, square = 0;
      for (const uint32_t pixel : pixels.subspan(c * plane, plane)) {
        sum += pixel;
        square += pixel * pixel;
      }
      sums[c] += sum;
      squares[c] += square;
    }
  }));
  const double count = static_cast<double>(dataset.size() * plane);
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sums[c]) / count;
    summary.mean.push_back(mean);
    summary.deviation.push_back(
        std::sqrt(std::fmax(0, static_cast<double>(squares[c]) / count - mean * mean)));
  }
  return summary;
}

}  // namespace kumo
