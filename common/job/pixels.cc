#include "common/job/pixels.h"

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

void ScalePictures(const PixelFormula& formula, int64_t channels, int64_t plane,
                   std::span<const uint8_t> pixels, float* numbers) {
  if (formula.mean.empty() && formula.scales.empty()) {
    return ScalePixels(pixels.data(), std::ssize(pixels), formula.scale, numbers);
  }
  for (int64_t first = 0; first < std::ssize(pixels); first += plane) {
    const int64_t channel = first / plane % channels;
    const float scale = formula.scale_of(channel);
    if (formula.mean.empty()) {
      ScalePixels(pixels.data() + first, plane, scale, numbers + first);
    } else {
      ScaleDifferences(pixels.data() + first, formula.mean.data() + channel * plane, plane, scale,
                       numbers + first);
    }
  }
}

}  // namespace kumo
