// Formulas of the codecs, element by element, for the CPU's kernels and for devices: both give the
// same bits.
//
// A kernel header (common/base/isa.h). Its includer has named the namespace (KUMO_ISA), says what
// stands in front of a function (KUMO_FORMULA), and has BitsOf(float), FloatOf(uint32_t) and
// RootOf(float), the square root, there.
// No product and sum may be contracted.
#pragma once

#include <cstdint>

#include "common/codec/kernel.h"

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

// Integers of kBits bits: a scale for each bucket, absmax / kMost, and codes rounded to nearest
// even.
template <int bits>
struct IntegerFormula {
  static constexpr int kBits = bits;
  static constexpr float kMost = static_cast<float>((1 << (bits - 1)) - 1);  // the largest code
  // No code, not even -kMost - 1, decodes to infinity with a scale up to this.
  static constexpr float kLargestScale = 0x1.fffffep127f / (kMost + 1.0f);
  // Buckets below this are sent as zeros (1 / scale would overflow); feedback keeps them.
  static constexpr float kSmallestAbsMax = 0x1p-100f;
  // Adding it rounds to an integer, nearest even, that then lies in the low bits.
  static constexpr float kRound = 0x1.8p23f;

  KUMO_FORMULA static float ScaleOf(float absmax) {
    const float scale = absmax < kSmallestAbsMax ? 0.0f : absmax / kMost;
    return scale < kLargestScale ? scale : kLargestScale;
  }
  KUMO_FORMULA static float InverseOf(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }
  // kRound + the code of u, for a number or a vector of them. The low bits are the code, two's
  // complement.
  template <typename T>
  KUMO_FORMULA static T Shifted(T u, float inverse) {
    return Rounded(u * inverse);
  }
  // The same with a random number between -.5 and .5, which rounds up or down.
  KUMO_FORMULA static float Shifted(float u, float inverse, float random) {
    return Rounded(u * inverse + random);
  }
  template <typename T>
  KUMO_FORMULA static T Rounded(T code) {
    const T largest = T{} + kMost;
    code = code < largest ? code : largest;
    code = code > -largest ? code : -largest;
    return code + kRound;
  }
  template <typename T>
  KUMO_FORMULA static T ErrorOf(T u, T shifted, float scale) {
    return u - (shifted - kRound) * scale;
  }
  // The number of a code's lowest kBits bits, before its scale.
  KUMO_FORMULA static float ValueOf(uint32_t code) {
    return static_cast<float>(static_cast<int32_t>(code << (32 - bits)) >> (32 - bits));
  }
};

using Int8Formula = IntegerFormula<8>;

// Random numbers of stochastic rounding: functions of a key and a number's position in the flat
// vector, so the same in any order, in any chunk and on any device.
struct RandomKey {
  uint32_t a = 0;
  uint32_t b = 0;

  // For the positions that share their upper 32 bits with `position`. The finaliser of SplitMix64
  // (Steele et al., OOPSLA 2014).
  KUMO_FORMULA static RandomKey Of(uint64_t key, uint64_t position) {
    uint64_t bits = key + ((position >> 32) + 1u) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    return {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  }
  // Uniform between -.5 and .5, symmetric, 24 bits. The multipliers and shifts are C. Wellons's
  // "lowbias32".
  KUMO_FORMULA float At(uint32_t position) const {
    uint32_t bits = position ^ a;
    bits ^= bits >> 16;
    bits *= 0x7feb352du;
    bits ^= bits >> 15;
    bits += b;
    bits *= 0x846ca68bu;
    bits ^= bits >> 16;
    return static_cast<float>(static_cast<int32_t>(bits >> 8)) * 0x1p-24f - (0.5f - 0x1p-25f);
  }
};

// Inputs of a bucket's encoding beside the numbers.
struct BucketFacts {
  uint32_t absmax_bits = 0;     // of the largest |u|
  int count = 0;                // numbers of the bucket
  float sum_of_squares = 0.0f;  // of u * UnitOf(absmax_bits), if the formula has kNeedsSquares
  float threshold = 0.0f;
  RandomKey key;
  uint32_t first = 0;  // position of the bucket's first number in the flat vector, 32 bits

  // All but the facts about the numbers. begin: of the bucket in its chunk.
  KUMO_FORMULA static BucketFacts Of(const CodecSettings& settings, const EncodeContext& context,
                                     uint64_t begin) {
    BucketFacts facts;
    facts.threshold = settings.threshold;
    facts.key = RandomKey::Of(context.key, context.first + begin);
    facts.first = static_cast<uint32_t>(context.first + begin);
    return facts;
  }
  // A power of two that scales the largest |u| to 1 .. 4, so that its square is a float32. For an
  // absmax of at least kSmallestAbsMax.
  KUMO_FORMULA static float UnitOf(uint32_t absmax_bits) {
    const uint32_t exponent = absmax_bits >> 23;
    return FloatOf((254u - (exponent < 253u ? exponent : 253u)) << 23);
  }
};

// A packed formula is the state of one bucket: `scale`, and
//   kBits: 2, 4 or 8 bits a number; kLargestScale, kNeedsSquares
//   Of(facts)
//   CodeOf(u, i): the code of number i of the bucket, in the lowest kBits bits
//   ValueOf(code): from the lowest kBits bits; decode(code) = ValueOf(code) * scale

// absmax / kMost, rounded to nearest even.
template <int bits>
struct NearestFormula : IntegerFormula<bits> {
  using Integer = IntegerFormula<bits>;
  static constexpr bool kNeedsSquares = false;
  float scale;
  float inverse;

  KUMO_FORMULA static NearestFormula Of(const BucketFacts& facts) {
    NearestFormula formula;
    formula.scale = Integer::ScaleOf(FloatOf(facts.absmax_bits));
    formula.inverse = Integer::InverseOf(formula.scale);
    return formula;
  }
  KUMO_FORMULA uint32_t CodeOf(float u, int) const { return BitsOf(Integer::Shifted(u, inverse)); }
};

// The same scale, rounded up or down at random so that the mean is u: QSGD (Alistarh et al.,
// NeurIPS 2017).
template <int bits>
struct StochasticFormula : IntegerFormula<bits> {
  using Integer = IntegerFormula<bits>;
  static constexpr bool kNeedsSquares = false;
  float scale;
  float inverse;
  RandomKey key;
  uint32_t first;

  KUMO_FORMULA static StochasticFormula Of(const BucketFacts& facts) {
    StochasticFormula formula;
    formula.scale = Integer::ScaleOf(FloatOf(facts.absmax_bits));
    formula.inverse = Integer::InverseOf(formula.scale);
    formula.key = facts.key;
    formula.first = facts.first;
    return formula;
  }
  KUMO_FORMULA uint32_t CodeOf(float u, int i) const {
    return BitsOf(Integer::Shifted(u, inverse, key.At(first + static_cast<uint32_t>(i))));
  }
};

// CNTK's convention: 2^n - 1 steps between -4 sigma and 4 sigma, sigma = sqrt(mean u^2), and
//   c = floor((u - low) / step), 0 .. 2^n - 1;   decoded: low + (c + 1/2) step
// With low = -step (2^n - 1) / 2 that is (c - m) step for m = 2^(n-1) - 1: the multiple of step
// that is nearest to u, -m .. m + 1. The layout of the integers has one code more below 0 than
// above, so code and scale are the negative ones.
template <int bits>
struct CntkFormula : IntegerFormula<bits> {
  using Integer = IntegerFormula<bits>;
  static constexpr bool kNeedsSquares = true;
  static constexpr float kSteps = static_cast<float>((1 << bits) - 1);
  float scale;
  float inverse;  // -1 / scale

  KUMO_FORMULA static CntkFormula Of(const BucketFacts& facts) {
    const float absmax = FloatOf(facts.absmax_bits);
    const float unit = BucketFacts::UnitOf(facts.absmax_bits);
    const float mean = facts.sum_of_squares / static_cast<float>(facts.count);
    float step = RootOf(mean) * (8.0f / kSteps) / unit;
    step = step < Integer::kLargestScale ? step : Integer::kLargestScale;
    step = absmax < Integer::kSmallestAbsMax ? 0.0f : step;
    CntkFormula formula;
    formula.scale = -step;
    formula.inverse = Integer::InverseOf(step);
    return formula;
  }
  KUMO_FORMULA uint32_t CodeOf(float u, int) const {
    float place = u * inverse + 0.5f * kSteps;  // (u - low) / step
    place = place < kSteps ? place : kSteps;
    place = place > 0.0f ? place : 0.0f;
    constexpr auto kMiddle = static_cast<int32_t>(Integer::kMost);
    return static_cast<uint32_t>(kMiddle - static_cast<int32_t>(place));
  }
};

// MXNet's 2bit: a threshold T, and +T, -T or 0.
struct ThresholdFormula : IntegerFormula<2> {
  static constexpr bool kNeedsSquares = false;
  float scale;

  KUMO_FORMULA static ThresholdFormula Of(const BucketFacts& facts) {
    ThresholdFormula formula;
    formula.scale = facts.threshold;
    return formula;
  }
  KUMO_FORMULA uint32_t CodeOf(float u, int) const {
    return static_cast<uint32_t>(u >= scale) - static_cast<uint32_t>(u <= -scale);
  }
};

// e3m0: a sign and 3 bits of exponent e: 0 for e = 0, else 2^(e - 1) smallest; the largest is the
// bucket's absmax. Rounded to the nearest, the middle away from 0.
struct E3m0Formula {
  static constexpr int kBits = 4;
  static constexpr bool kNeedsSquares = false;
  static constexpr float kLargestScale = 0x1.fffffep127f / 64.0f;
  static constexpr float kSmallestAbsMax = 0x1p-100f;  // as IntegerFormula's
  static constexpr uint32_t kSign = 8u;
  float scale;
  float inverse;

  KUMO_FORMULA static E3m0Formula Of(const BucketFacts& facts) {
    const float absmax = FloatOf(facts.absmax_bits);
    E3m0Formula formula;
    formula.scale = absmax < kSmallestAbsMax ? 0.0f : absmax * 0x1p-6f;
    formula.inverse = formula.scale > 0.0f ? 1.0f / formula.scale : 0.0f;
    return formula;
  }
  // Half of the mantissa's range, added, carries into the exponent from 1.5 on.
  KUMO_FORMULA uint32_t CodeOf(float u, int) const {
    const uint32_t bits = BitsOf(u * inverse);
    const uint32_t magnitude = bits & kMagnitudeBits;
    int32_t exponent = static_cast<int32_t>((magnitude + 0x400000u) >> 23) - 126;
    exponent = exponent > 1 ? exponent : 1;
    exponent = exponent < 7 ? exponent : 7;
    exponent = magnitude < 0x3f000000u ? 0 : exponent;  // .5
    return static_cast<uint32_t>(exponent) | ((bits >> 28) & kSign);
  }
  // The code at the places of a float32's sign and lowest exponent bits is +-2^(e - 127), or +-0.
  KUMO_FORMULA static float ValueOf(uint32_t code) {
    const auto placed = static_cast<uint32_t>(static_cast<int32_t>(code << 28) >> 5);
    return FloatOf(placed & 0x83800000u) * 0x1p126f;
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
  // Mean from a sum in double, if the sum in float32 would be huge.
  KUMO_FORMULA static float MeanOf(double sum, int count) {
    return count > 0 ? static_cast<float>(sum / count) : 0.0f;
  }
};

}  // namespace kumo::KUMO_ISA
