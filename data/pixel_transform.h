// Images to a network's inputs on the host: common/job/pixels.h has the formula.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/job/pixels.h"
#include "data/dataset.h"

namespace kumo {

class PixelTransform {
 public:
  // A transform of images of `shape`. Requires formula.mean to be empty or of shape.size() numbers.
  PixelTransform(const SampleShape& shape, PixelFormula formula);

  // One image, or the window of it. `window` may be null: all of it. Requires image and inputs of
  // shape.size().
  void Apply(std::span<const uint8_t> image, const Window* window, std::span<float> inputs);

 private:
  void CutOut(const uint8_t* image, const Window& window);

  const SampleShape shape_;
  const PixelFormula formula_;
  std::vector<uint8_t> cut_;  // the pixels of a window
};

}  // namespace kumo
