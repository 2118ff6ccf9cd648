// Resampling, channel separation and colour distortion of 8-bit images.
//
// Resampling is separable: `across` resamples rows, then `down` the columns of its results. Each
// result pixel is a weighted sum of neighbouring pixels, in 32-bit integers:
//
//   pixel = clip((sum_t weight_t source_t + 2^15) >> 16),   sum_t weight_t = 2^16
//
// Integer sums have the same bits in any order. So each pass is laid out as the vectors want it: a
// vector holds pixels that share their weights.
//
// - Down: the pixels of a row share them. 64 sums at a time, source row after source row.
// - Across: the pixels of a column share them. So 16 rows at a time are transposed to columns of 16
//   bytes by shuffles, resampled, and transposed back in blocks of 16 x 16.
//
// Distortion takes 64 pixels at a time through all its steps, in a buffer that stays in the first
// cache. Brightness and contrast are integer arithmetic; saturation and hue are float32 in which no
// product and sum is contracted, and both have no branches, so the loops are vectorised.
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

KUMO_ALWAYS_INLINE int32_t Clipped(int32_t level) {
  const int32_t above = level < 0 ? 0 : level;
  return above > 255 ? 255 : above;
}

// The level of a weighted sum. Filters with negative weights exceed the levels beside edges.
KUMO_ALWAYS_INLINE uint8_t LevelOf(int32_t sum) {
  return static_cast<uint8_t>(Clipped(sum >> kFractionBits));
}

// Horizontal pass. Some weights may be negative, so a sum is a few times 255 * 2^16 at most, and
// fits 32 bits. Adding one half (2^15) before the shift rounds to nearest.
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
      for (int r = 0; r < 16; ++r) sum_bytes[r] = LevelOf(sums[r]);
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
    for (int64_t i = 0; i < n; ++i) out[begin + i] = LevelOf(sums[i]);
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

// Changes saturation and hue of up to 64 colours. With V the largest level and R its distance from
// the smallest one, HSV's saturation is R / V, and with h in [0, 6) the level of a channel is
//
//   V - R max(0, min(k, 4 - k, 1)),   k = (n + h) mod 6,   n = 5, 3, 1 for red, green, blue
//
// (Smith 1978, "Color gamut transform pairs", without its six cases, so that it has no branches).
void TurnColours(int64_t n, float saturation, float turn, float* red, float* green, float* blue) {
  KUMO_VECTOR_LOOP
  for (int64_t i = 0; i < n; ++i) {
    const float r = red[i], g = green[i], b = blue[i];
    const float rg = r > g ? r : g, least_rg = r < g ? r : g;
    const float most = rg > b ? rg : b;
    const float range = most - (least_rg < b ? least_rg : b);
    const float divisor = range > 1 ? range : 1.0f;
    const float at_red = g - b, at_green = b - r, at_blue = r - g;
    const float between = most == r ? at_red : most == g ? at_green : at_blue;
    const float sixths = most == r ? 0.0f : most == g ? 2.0f : 4.0f;
    const float hue = turn + sixths + between / divisor;  // in [-1, 11)
    const float wide = range * saturation;
    const float new_range = wide < most ? wide : most;
    const auto level = [&](float offset) KUMO_INLINE_LAMBDA {
      float k = hue + offset;
      k = k >= 6 ? k - 6 : k;
      k = k >= 6 ? k - 6 : k;
      const float down = 4 - k;
      float part = k < down ? k : down;
      part = part < 1 ? part : 1.0f;
      part = part > 0 ? part : 0.0f;
      return most - new_range * part;
    };
    red[i] = level(5);
    green[i] = level(3);
    blue[i] = level(1);
  }
}

void Distort(const uint8_t* planes, int64_t pixels, const Distortion& distortion, uint8_t* out) {
  constexpr int64_t kAtOnce = 64;
  const int32_t brightness = distortion.brightness;
  const int32_t first = distortion.contrast_first, last = distortion.contrast_last;
  const bool colours = distortion.saturation != 1 || distortion.turn != 0;
  for (int64_t begin = 0; begin < pixels; begin += kAtOnce) {
    const int64_t n = pixels - begin < kAtOnce ? pixels - begin : kAtOnce;
    float levels[kColours][kAtOnce];
    for (int c = 0; c < kColours; ++c) {
      const uint8_t* const from = planes + c * pixels + begin;
      float* const to = levels[c];
      KUMO_VECTOR_LOOP
      for (int64_t i = 0; i < n; ++i) {
        const int32_t brighter = Clipped(from[i] + brightness);
        to[i] = static_cast<float>(Clipped((brighter * first + kHalf) >> kFractionBits));
      }
    }
    if (colours) {
      TurnColours(n, distortion.saturation, distortion.turn, levels[0], levels[1], levels[2]);
    }
    for (int c = 0; c < kColours; ++c) {
      const float* const from = levels[c];
      uint8_t* const to = out + c * pixels + begin;
      KUMO_VECTOR_LOOP
      for (int64_t i = 0; i < n; ++i) {
        const int32_t level = Clipped(static_cast<int32_t>(from[i] + 0.5f));
        to[i] = static_cast<uint8_t>(Clipped((level * last + kHalf) >> kFractionBits));
      }
    }
  }
}

}  // namespace

extern const PixelKernels kPixels;
constinit const PixelKernels kPixels = {Across, Down, Separate, Distort};

}  // namespace kumo::KUMO_ISA
