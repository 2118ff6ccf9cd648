// common/job/pixels.h's formula and crop_and_flip.h's written out plainly, number by number, and
// data sets to try them on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/job/pixels.h"
#include "data/samples/dataset.h"
#include "data/transforms/crops.h"

namespace kumo::test {

// Of channels x height x width.
using Extents = std::vector<int64_t>;
inline int64_t Numbers(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }

inline std::vector<float> InputsOf(std::span<const uint8_t> image, const PixelFormula& formula) {
  std::vector<float> inputs;
  for (size_t i = 0; i < image.size(); ++i) {
    const float mean = formula.mean.empty() ? 0.0f : formula.mean[i];
    const size_t channels = std::max<size_t>(1, formula.scales.size());
    const float scale = formula.scale_of(static_cast<int64_t>(i * channels / image.size()));
    inputs.push_back(scale * (static_cast<float>(image[i]) - mean));
  }
  return inputs;
}

inline std::vector<uint8_t> CutOf(const Extents& extents, std::span<const uint8_t> image,
                                  const Window& window, uint8_t pad_value) {
  const int64_t height = extents[1], width = extents[2];
  std::vector<uint8_t> cut;
  for (int64_t c = 0; c < extents[0]; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t row = window.top + y;
        const int64_t column = window.left + (window.mirrored ? width - 1 - x : x);
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        cut.push_back(inside ? image[(c * height + row) * width + column] : pad_value);
      }
    }
  }
  return cut;
}

inline std::vector<uint8_t> RandomBytes(Rng& rng, int64_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.NextBelow(256));
  return bytes;
}

// A formula with a mean or without.
inline PixelFormula RandomFormula(Rng& rng, int64_t size, bool mean) {
  PixelFormula formula;
  formula.scale = rng.NextUniform(0.001f, 2.0f);
  for (int64_t i = 0; mean && i < size; ++i) formula.mean.push_back(rng.NextUniform(0.0f, 255.0f));
  return formula;
}

// Begins up to `pad` outside the image, on every side.
inline Window RandomWindow(Rng& rng, int pad) {
  const auto place = [&] { return static_cast<int>(rng.NextBelow(2 * pad + 1)) - pad; };
  Window window;
  window.top = place();
  window.left = place();
  window.mirrored = rng.NextBelow(2) == 1;
  return window;
}

// Another data set that does not have its samples in memory.
class ReadEachTime final : public Dataset {
 public:
  explicit ReadEachTime(const Dataset* dataset) : dataset_(*dataset) {}

  int64_t size() const override { return dataset_.size(); }
  const Fields& fields() const override { return dataset_.fields(); }
  int classes() const override { return dataset_.classes(); }
  const std::string& name() const override { return dataset_.name(); }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    Sample borrowed(fields());
    KUMO_RETURN_IF_ERROR(dataset_.ReadKey(key, &borrowed));
    for (int f = 0; f < std::ssize(fields()); ++f) {
      const std::span<const std::byte> numbers = borrowed.field(f);
      std::ranges::copy(numbers, sample->Make(f, numbers.size()).begin());
    }
    return OkStatus();
  }

 private:
  const Dataset& dataset_;
};

// All samples of a data set: images, labels (of objects: their classes), and the other fields.
struct Contents {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  std::vector<std::byte> others;
  bool operator==(const Contents&) const = default;
};

inline int32_t NumberOf(std::span<const std::byte> bytes) {
  int32_t number = 0;
  std::ranges::copy(bytes.first(sizeof number), reinterpret_cast<std::byte*>(&number));
  return number;
}

// The field of the objects' classes, of the labels, or of the classes of pixels.
inline int LabelsField(const Dataset& dataset) {
  const int classes = FindField(dataset.fields(), kClassesField);
  const int label = FindField(dataset.fields(), kLabelField);
  return classes >= 0 ? classes : label >= 0 ? label : kLabel;
}

// The labels of a sample: integers, or bytes of a mask; none if they are numbers.
inline std::vector<int32_t> LabelsOf(const Dataset& dataset, const Sample& sample) {
  const int field = LabelsField(dataset);
  std::span<const std::byte> bytes = sample.field(field);
  std::vector<int32_t> labels;
  if (dataset.fields()[field].kind == FieldKind::kMask) {
    for (const std::byte byte : bytes) labels.push_back(static_cast<int32_t>(byte));
    return labels;
  }
  if (dataset.fields()[field].type == NumberType::kFloat32) return labels;
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(int32_t))) labels.push_back(NumberOf(bytes));
  return labels;
}

inline Contents ReadAll(const Dataset& dataset) {
  Contents contents;
  const Status read = ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    const std::span<const uint8_t> pixels = sample.pixels(0);
    contents.pixels.insert(contents.pixels.end(), pixels.begin(), pixels.end());
    const std::vector<int32_t> labels = LabelsOf(dataset, sample);
    contents.labels.insert(contents.labels.end(), labels.begin(), labels.end());
    for (int f = 1; f < std::ssize(dataset.fields()); ++f) {
      const std::span<const std::byte> bytes = sample.field(f);
      if (f == LabelsField(dataset)) continue;
      contents.others.insert(contents.others.end(), bytes.begin(), bytes.end());
    }
  });
  if (!read.ok()) contents = {};
  return contents;
}

}  // namespace kumo::test
