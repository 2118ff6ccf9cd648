#include "data/pixel_transform.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

// The two loops are kept apart and plain so that the compiler turns them into vector instructions
// (CMakeLists.txt asks for -O3); each operation rounds once, so every instruction set gives the
// same bits.
void ScalePixels(const uint8_t* __restrict pixels, int64_t count, float scale,
                 float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(pixels[i]);
}
void ScaleDifferences(const uint8_t* __restrict pixels, const float* __restrict mean, int64_t count,
                      float scale, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = scale * (static_cast<float>(pixels[i]) - mean[i]);
}

}  // namespace

PixelTransform::PixelTransform(const SampleShape& shape, PixelFormula formula)
    : shape_(shape), formula_(std::move(formula)) {
  CHECK(formula_.mean.empty() || std::ssize(formula_.mean) == shape_.size());
}

void PixelTransform::Apply(std::span<const uint8_t> image, const Window* window,
                           std::span<float> inputs) {
  CHECK_EQ(std::ssize(image), shape_.size());
  CHECK_EQ(inputs.size(), image.size());
  const uint8_t* pixels = image.data();
  if (window != nullptr && *window != Window()) {
    CutOut(pixels, *window);
    pixels = cut_.data();
  }
  if (formula_.mean.empty()) {
    ScalePixels(pixels, shape_.size(), formula_.scale, inputs.data());
  } else {
    ScaleDifferences(pixels, formula_.mean.data(), shape_.size(), formula_.scale, inputs.data());
  }
}

// Row by row: what a window has of a row is padding, then a piece of the image, then padding.
void PixelTransform::CutOut(const uint8_t* image, const Window& window) {
  const int64_t height = shape_.height;
  const int64_t width = shape_.width;
  cut_.assign(shape_.size(), formula_.pad_value);
  const int64_t first_row = std::clamp<int64_t>(-window.top, 0, height);
  const int64_t end_row = std::clamp<int64_t>(height - window.top, first_row, height);
  const int64_t first = std::clamp<int64_t>(-window.left, 0, width);
  const int64_t end = std::clamp<int64_t>(width - window.left, first, width);
  for (int64_t c = 0; c < shape_.channels; ++c) {
    for (int64_t y = first_row; y < end_row; ++y) {
      uint8_t* const row = cut_.data() + (c * height + y) * width;
      const uint8_t* const from =
          image + ((c * height + window.top + y) * width + window.left + first);
      if (window.mirrored) {
        std::reverse_copy(from, from + (end - first), row + width - end);
      } else {
        std::copy(from, from + (end - first), row + first);
      }
    }
  }
}

}  // namespace kumo
