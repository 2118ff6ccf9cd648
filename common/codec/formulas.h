// Formulas of the codecs, element by element, for the CPU's kernels and for devices: both give the
// same bits.
//
// A kernel header (common/base/isa.h). Its includer has named the namespace (KUMO_ISA), says what
// stands in front of a function (KUMO_FORMULA), and has BitsOf(float) and FloatOf(uint32_t) there.
// No product and sum may be contracted.
#pragma once

#include <cstdint>

namespace kumo::KUMO_ISA {

constexpr uint32_t kInfinityBits = 0x7f800000u;
constexpr uint32_t kMagnitudeBits = 0x7fffffffu;

// A half is a struct with
//   FromFloat(x): x is finite; rounds to nearest even and saturates
//   ToFloat(bits), exact
//   kInfinity: the bits of its infinity

// Upper half of a float32.
struct BFloat16 {
  static constexpr uint16_t kInfinity = 0x7f80u;

  KUMO_FORMULA static uint16_t FromFloat(float x) {
    const uint32_t bits = BitsOf(x);
    const uint32_t magnitude = bits & kMagnitudeBits;
    uint32_t half = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16;
    half = half < kInfinity ? half : kInfinity - 1u;
    return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
  }
  KUMO_FORMULA static float ToFloat(uint16_t half) { return FloatOf(uint32_t{half} << 16); }
};

// IEEE binary16.
struct Binary16 {
  static constexpr uint16_t kInfinity = 0x7c00u;
  static constexpr uint32_t kLargestBits = 0x477fe000u;     // 65504 as float32 bits
  static constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14
  static constexpr uint32_t kRebias = (127u - 15u) << 23;

  // After F. Giesen, "Float->half variants": normal numbers are rounded in the integer, subnormal
  // ones by adding 0.5, whose last place is binary16's smallest number.
  KUMO_FORMULA static uint16_t FromFloat(float x) {
    const uint32_t bits = BitsOf(x);
    uint32_t magnitude = bits & kMagnitudeBits;
    magnitude = magnitude < kLargestBits ? magnitude : kLargestBits;
    const uint32_t normal = (magnitude - kRebias + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
    const uint32_t half = magnitude < kSmallestNormal ? subnormal : normal;
    return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
  }
  KUMO_FORMULA static float ToFloat(uint16_t half) {
    const uint32_t shifted = (half & 0x7fffu) << 13;
    const uint32_t normal = shifted + kRebias;
    const uint32_t infinite = normal + kRebias;  // and NaN
    const uint32_t subnormal =
        BitsOf(FloatOf(shifted + kSmallestNormal) - FloatOf(kSmallestNormal));
    uint32_t bits = shifted >= (uint32_t{kInfinity} << 13) ? infinite : normal;
    bits = shifted < (1u << 23) ? subnormal : bits;
    return FloatOf(bits | ((half & 0x8000u) << 16));
  }
};

// int8: a scale for each bucket, absmax / 127, and codes rounded to nearest even.
struct Int8Formula {
  // No code, not even -128, decodes to infinity with a scale up to this.
  static constexpr float kLargestScale = 0x1.fffffep127f / 128.0f;
  // Buckets below this are sent as zeros (1 / scale would overflow); feedback keeps them.
  static constexpr float kSmallestAbsMax = 0x1p-100f;
  // Adding it rounds to an integer, nearest even, that then lies in the low bits.
  static constexpr float kRound = 0x1.8p23f;

  KUMO_FORMULA static float ScaleOf(float absmax) {
    const float scale = absmax < kSmallestAbsMax ? 0.0f : absmax / 127.0f;
    return scale < kLargestScale ? scale : kLargestScale;
  }
  KUMO_FORMULA static float InverseOf(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }
  // kRound + the code of u, for a number or a vector of them. The low byte of the bits is the code
  // as int8.
  template <typename T>
  KUMO_FORMULA static T Shifted(T u, float inverse) {
    const T largest = T{} + 127.0f;
    T code = u * inverse;
    code = code < largest ? code : largest;
    code = code > -largest ? code : -largest;
    return code + kRound;
  }
  template <typename T>
  KUMO_FORMULA static T ErrorOf(T u, T shifted, float scale) {
    return u - (shifted - kRound) * scale;
  }
};

// 1bit: the sign of each number, and the means of the numbers below 0 and of the others.
struct OneBitFormula {
  struct Levels {
    float low;
    float high;
  };

  // Whether a sum is beyond float32.
  KUMO_FORMULA static bool IsHuge(float sum) {
    return (BitsOf(sum) & kInfinityBits) == kInfinityBits;
  }
  KUMO_FORMULA static float MeanOf(float sum, int count) {
    return count > 0 ? sum / static_cast<float>(count) : 0.0f;
  }
  // Of a sum in double, of numbers whose sum in float32 is huge.
  KUMO_FORMULA static float MeanOf(double sum, int count) {
    return count > 0 ? static_cast<float>(sum / count) : 0.0f;
  }
};

}  // namespace kumo::KUMO_ISA
