// Pixel kernels: loops over the pixels of whole images, compiled once per instruction-set level.
// Integer arithmetic, and float32 without contraction, so all levels give the same bits. Pure
// functions.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// Filter taps along one axis: result pixel i is the sum of `count` source pixels from first[i] on,
// with weights that add up to 2^16.
struct PixelTaps {
  const int32_t* first;    // by result pixel
  const int32_t* weights;  // `count` per result pixel
  int64_t count;
};

// Channels of a colour image.
inline constexpr int kColours = 3;
// Number of rows that are resampled together.
inline constexpr int kRowsAtOnce = 16;

// Photometric distortion of a colour image, in this order.
struct Distortion {
  int32_t brightness = 0;            // levels that are added
  int32_t contrast_first = 1 << 16;  // factor of the levels, with 16 fraction bits
  float saturation = 1;              // factor of HSV's saturation, at least 0
  float turn = 0;                    // of HSV's hue, in sixths of a full turn; in [0, 6)
  int32_t contrast_last = 1 << 16;   // as contrast_first
  bool operator==(const Distortion&) const = default;
};

struct PixelKernels {
  // Resamples `rows` (at most kRowsAtOnce) rows of in_width pixels, in_stride apart, to out_width
  // pixels each. columns: scratch memory of kRowsAtOnce x in_width bytes.
  void (*across)(const uint8_t* in, int64_t in_stride, int rows, int64_t in_width,
                 const PixelTaps& taps, int64_t out_width, uint8_t* columns, uint8_t* out);
  // Computes one result row from rows of `width` pixels: those from in + taps.first[row] * width
  // on.
  void (*down)(const uint8_t* in, int64_t width, const PixelTaps& taps, int64_t row, uint8_t* out);
  // Splits interleaved pixels of three channels into three planes.
  void (*separate)(const uint8_t* interleaved, int64_t pixels, uint8_t* planes);
  // Distorts three planes of colours. Levels are rounded and clipped after each step, except
  // between saturation and hue.
  void (*distort)(const uint8_t* planes, int64_t pixels, const Distortion& distortion,
                  uint8_t* out);
};

KUMO_DECLARE_PER_ISA(const PixelKernels, kPixels)

}  // namespace kumo
