// common/job/pixels.h's formula written out plainly, number by number, and data sets to try it on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/job/pixels.h"
#include "data/dataset.h"

namespace kumo::test {

inline std::vector<float> InputsOf(const SampleShape& shape, std::span<const uint8_t> image,
                                   const PixelFormula& formula, const Window& window) {
  std::vector<float> inputs;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = 0; y < shape.height; ++y) {
      for (int64_t x = 0; x < shape.width; ++x) {
        const int64_t row = window.top + y;
        const int64_t column = window.left + (window.mirrored ? shape.width - 1 - x : x);
        const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
        const uint8_t pixel =
            inside ? image[(c * shape.height + row) * shape.width + column] : formula.pad_value;
        const float mean =
            formula.mean.empty() ? 0.0f : formula.mean[(c * shape.height + y) * shape.width + x];
        inputs.push_back(formula.scale * (static_cast<float>(pixel) - mean));
      }
    }
  }
  return inputs;
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
  formula.pad_value = static_cast<uint8_t>(rng.NextBelow(256));
  for (int64_t i = 0; mean && i < size; ++i) formula.mean.push_back(rng.NextUniform(0.0f, 255.0f));
  return formula;
}

// Begins up to `pad` outside the image, on every side.
inline Window RandomWindow(Rng& rng, int pad) {
  const auto place = [&] {
    return static_cast<int16_t>(static_cast<int>(rng.NextBelow(2 * pad + 1)) - pad);
  };
  Window window;
  window.top = place();
  window.left = place();
  window.mirrored = rng.NextBelow(2) == 1;
  return window;
}

// Another data set that says nothing of where it lies.
class Unmapped final : public Dataset {
 public:
  explicit Unmapped(const Dataset* dataset) : dataset_(*dataset) {}

  int64_t size() const override { return dataset_.size(); }
  SampleShape shape() const override { return dataset_.shape(); }
  int classes() const override { return dataset_.classes(); }
  const std::string& name() const override { return dataset_.name(); }
  Status Read(std::span<const int64_t> indices, std::span<uint8_t> pixels,
              std::span<int32_t> labels) const override {
    return dataset_.Read(indices, pixels, labels);
  }

 private:
  const Dataset& dataset_;
};

}  // namespace kumo::test
