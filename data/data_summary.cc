#include "data/data_summary.h"

#include <cmath>
#include <cstring>
#include <span>

namespace kumo {
namespace {

// Statistics of a channel's pixels. Sums of bytes are integers and exact.
struct Sums {
  double numbers = 0, squares = 0, count = 0;
};

template <typename Number>
void Add(std::span<const std::byte> bytes, std::span<Sums> channels) {
  const size_t plane = bytes.size() / sizeof(Number) / channels.size();
  const auto* numbers = reinterpret_cast<const Number*>(bytes.data());
  for (size_t c = 0; c < channels.size(); ++c) {
    double sum = 0, squares = 0;
    for (const Number number : std::span(numbers + c * plane, plane)) {
      const auto x = static_cast<double>(number);
      sum += x;
      squares += x * x;
    }
    channels[c].numbers += sum;
    channels[c].squares += squares;
    channels[c].count += static_cast<double>(plane);
  }
}

void Finish(std::span<const Sums> of, std::vector<double>* means, std::vector<double>* deviations) {
  for (const Sums& sums : of) {
    const double mean = sums.numbers / sums.count;
    means->push_back(mean);
    deviations->push_back(std::sqrt(std::fmax(0, sums.squares / sums.count - mean * mean)));
  }
}

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
  const bool bytes = image >= 0 && dataset.fields()[image].type == NumberType::kUint8;
  DataSummary summary;
  summary.of_class.resize(dataset.classes());
  std::vector<Sums> channels(image < 0 ? 0 : dataset.fields()[image].extents[0]);
  const bool numbers = dataset.classes() == 0;
  std::vector<Sums> labels(numbers ? dataset.fields()[label].numbers() : 0);
  KUMO_RETURN_IF_ERROR(ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    if (numbers) {
      Add<float>(sample.field(label), labels);
    } else {
      CountLabels(sample.field(label), &summary.of_class);
    }
    if (image < 0) return;
    if (bytes) {
      Add<uint8_t>(sample.field(image), channels);
    } else {
      Add<float>(sample.field(image), channels);
    }
  }));
  Finish(channels, &summary.mean, &summary.deviation);
  Finish(labels, &summary.label_mean, &summary.label_deviation);
  return summary;
}

}  // namespace kumo
