// Pixel formula: conversion of the bytes of an image to inputs of a network, with the same bits on
// every device.
//
//   input(c, y, x) = scale(c) * (pixel(c, y, x) - mean(c, y, x))
//
// In float32: the difference is rounded, then the product; without a mean it is scale * pixel. The
// mean belongs to a position, so it is subtracted after crops and flips, as in CNTK. A mean m and a
// standard deviation d of each channel, (scale * pixel - m) / d, become mean = m / scale and
// scale(c) = scale / d, each rounded once.
//
// A value and a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kumo {

struct PixelFormula {
  float scale = 1.0f;
  std::vector<float> mean{};    // of an image, channels x height x width; empty: none is subtracted
  std::vector<float> scales{};  // of each channel, instead of `scale`; empty: `scale` for all

  float scale_of(int64_t channel) const { return scales.empty() ? scale : scales[channel]; }
};

// numbers = the formula of pixels: pictures of `channels` x `plane`, one after the other. Requires
// a formula of their size.
void ScalePictures(const PixelFormula& formula, int64_t channels, int64_t plane,
                   std::span<const uint8_t> pixels, float* numbers);

}  // namespace kumo
