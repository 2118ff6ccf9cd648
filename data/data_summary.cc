#include "data/data_summary.h"

#include <cmath>
#include <cstring>
#include <span>

namespace kumo {

namespace {

void CountLabels(std::span<const std::byte> labels, std::vector<int64_t>* of_class) {
  for (size_t i = 0; i < labels.size(); i += sizeof(int32_t)) {
    int32_t label = 0;
    std::memcpy(&label, labels.data() + i, sizeof label);
    ++(*of_class)[label];
  }
}

}  // namespace

Result<DataSummary> Summarise(const Dataset& dataset) {
  const int image = FindField(dataset.fields(), kImageField);
  const int label = FindField(dataset.fields(), kLabelField);
  if (label < 0) return FailedPrecondition(dataset.name() + ": its samples have no labels");
  const int64_t channels = image < 0 ? 0 : dataset.fields()[image].extents[0];
  const int64_t plane = image < 0 ? 0 : dataset.fields()[image].numbers() / channels;
  DataSummary summary;
  summary.of_class.resize(dataset.classes());
  // Whole numbers: exact, however many there are.
  std::vector<uint64_t> sums(channels), squares(channels);
  KUMO_RETURN_IF_ERROR(ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    CountLabels(sample.field(label), &summary.of_class);
    for (int64_t c = 0; c < channels; ++c) {
      uint64_t sum = 0, square = 0;
      for (const uint32_t pixel : sample.pixels(image).subspan(c * plane, plane)) {
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
