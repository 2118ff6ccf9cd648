// Pixel kernels: loops over the pixels of whole images, compiled once per instruction-set level.
// Integer arithmetic, so all levels give the same bits. Pure functions.
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
};

KUMO_DECLARE_PER_ISA(const PixelKernels, kPixels)

}  // namespace kumo
