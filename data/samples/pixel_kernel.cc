#include <cstddef>
#include <cstdint>

#include "common/base/vector_loop.h"
#include "data/samples/pixel_kernels.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kFractionBits = 16;
constexpr int32_t kHalf = 1 << (kFractionBits - 1);

typedef uint8_t Bytes __attribute__((vector_size(kRowsAtOnce)));
static_assert(kRowsAtOnce == 16);

KUMO_ALWAYS_INLINE Bytes Lower(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
KUMO_ALWAYS_INLINE Bytes Upper(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

// Transposes a 16 x 16 block of bytes in four stages; each interleaves the bytes of the two halves.
KUMO_ALWAYS_INLINE void Transpose(Bytes rows[16]) {
#pragma GCC unroll 4
  for (int stage = 0; stage < 4; ++stage) {
    Bytes mixed[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      mixed[2 * i] = Lower(rows[i], rows[i + 8]);
      mixed[2 * i + 1] = Upper(rows[i], rows[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) rows[i] = mixed[i];
  }
}

// Converts 16 rows of `width` bytes to columns of 16 bytes; missing rows repeat the last one.
void ToColumns(const uint8_t* in, int64_t in_stride, int rows, int64_t width, uint8_t* columns) {
  for (int64_t x = 0; x < width; x += 16) {
    const int64_t n = width - x < 16 ? width - x : 16;
    Bytes block[16] = {};
    for (int r = 0; r < 16; ++r) {
      const uint8_t* const from = in + (r < rows ? r : rows - 1) * in_stride + x;
      if (n == 16) {
        __builtin_memcpy(&block[r], from, 16);
      } else {
        __builtin_memcpy(&block[r], from, static_cast<size_t>(n));
      }
    }
    Transpose(block);
    __builtin_memcpy(columns + x * 16, block, static_cast<size_t>(n) * 16);
  }
}

// Horizontal pass. With weights in units of 2^-16 that sum to 2^16, a weighted sum of bytes is at
// most 255 * 2^16 and fits 32 bits; adding one half before the shift rounds to nearest.
// Neighbouring result pixels of a row have different weights, but the 16 pixels of a column share
// theirs; so rows are transposed to columns first, and one weight multiplies a whole vector.
void Across(const uint8_t* in, int64_t in_stride, int rows, int64_t in_width, const PixelTaps& taps,
            int64_t out_width, uint8_t* columns, uint8_t* out) {
  ToColumns(in, in_stride, rows, in_width, columns);
  for (int64_t begin = 0; begin < out_width; begin += 16) {
    const int64_t n = out_width - begin < 16 ? out_width - begin : 16;
    Bytes block[16] = {};
    for (int64_t x = 0; x < n; ++x) {
      const uint8_t* const first = columns + int64_t{taps.first[begin + x]} * 16;
      const int32_t* const weights = taps.weights + (begin + x) * taps.count;
      int32_t sums[16];
      for (int r = 0; r < 16; ++r) sums[r] = kHalf;
      for (int64_t t = 0; t < taps.count; ++t) {
        const int32_t weight = weights[t];
        const uint8_t* const column = first + t * 16;
        KUMO_VECTOR_LOOP
        for (int r = 0; r < 16; ++r) sums[r] += weight * column[r];
      }
      uint8_t sum_bytes[16];
      KUMO_VECTOR_LOOP
      for (int r = 0; r < 16; ++r) sum_bytes[r] = static_cast<uint8_t>(sums[r] >> kFractionBits);
      __builtin_memcpy(&block[x], sum_bytes, 16);
    }
    Transpose(block);
    for (int r = 0; r < rows; ++r) {
      __builtin_memcpy(out + r * out_width + begin, &block[r], static_cast<size_t>(n));
    }
  }
}

void Down(const uint8_t* in, int64_t width, const PixelTaps& taps, int64_t row, uint8_t* out) {
  const uint8_t* const first = in + taps.first[row] * width;
  const int32_t* const weights = taps.weights + row * taps.count;
  constexpr int64_t kAtOnce = 64;
  for (int64_t begin = 0; begin < width; begin += kAtOnce) {
    const int64_t n = width - begin < kAtOnce ? width - begin : kAtOnce;
    int32_t sums[kAtOnce];
    for (int64_t i = 0; i < n; ++i) sums[i] = kHalf;
    for (int64_t t = 0; t < taps.count; ++t) {
      const int32_t weight = weights[t];
      const uint8_t* const from = first + t * width + begin;
      KUMO_VECTOR_LOOP
      for (int64_t i = 0; i < n; ++i) sums[i] += weight * from[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      out[begin + i] = static_cast<uint8_t>(sums[i] >> kFractionBits);
    }
  }
}

void Separate(const uint8_t* interleaved, int64_t pixels, uint8_t* planes) {
  uint8_t* const green = planes + pixels;
  uint8_t* const blue = green + pixels;
  KUMO_VECTOR_LOOP
  for (int64_t i = 0; i < pixels; ++i) {
    planes[i] = interleaved[3 * i];
    green[i] = interleaved[3 * i + 1];
    blue[i] = interleaved[3 * i + 2];
  }
}

}  // namespace

extern const PixelKernels kPixels;
constinit const PixelKernels kPixels = {Across, Down, Separate};

}  // namespace kumo::KUMO_ISA
