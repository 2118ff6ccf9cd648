// Loops over the pixels of whole images, compiled once per instruction-set level: whole numbers, so
// that all levels give the same bits. Pure functions.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// Numbers of one pixel along an axis are weighted by `count` weights from `first` on, which add up
// to 2^16.
struct PixelTaps {
  const int32_t* first;    // by pixel of the result
  const int32_t* weights;  // by pixel of the result, `count` each
  int64_t count;
};

// Rows that are resampled together.
inline constexpr int kRowsAtOnce = 16;

struct PixelKernels {
  // The sums of `rows` (at most kRowsAtOnce) rows of in_width pixels, in_stride apart: out_width
  // each. columns: kRowsAtOnce x in_width, to work in.
  void (*across)(const uint8_t* in, int64_t in_stride, int rows, int64_t in_width,
                 const PixelTaps& taps, int64_t out_width, uint8_t* columns, uint8_t* out);
  // One row, the sum of rows of `width` pixels: those from in + taps.first[row] * width on.
  void (*down)(const uint8_t* in, int64_t width, const PixelTaps& taps, int64_t row, uint8_t* out);
  // Pixels of three numbers beside each other into three planes.
  void (*separate)(const uint8_t* interleaved, int64_t pixels, uint8_t* planes);
};

KUMO_DECLARE_PER_ISA(const PixelKernels, kPixels)

}  // namespace kumo
