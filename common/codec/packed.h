// Packed formats for kernel sources: a scale per bucket, and 2, 4 or 8 bits a number. The formulas
// (formulas.h, "A packed formula") say what the codes mean.
//
// With s = kBucket / (8 / bits), byte j of the codes holds numbers j, s + j, 2 s + j .. of the
// bucket, the first in the lowest bits. So a byte is made of numbers at the same place of several
// vectors, and nothing is moved across lanes. A shorter last bucket has one byte for each number,
// at most s.
//
// Encoding makes codes of a byte each in a buffer of the first cache, then packs them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/lanes.h"
#include "common/codec/bucket.h"

namespace kumo::KUMO_ISA {

template <typename Formula>
struct PackedFormat {
  static constexpr bool kTakesFacts = true;
  static constexpr bool kLossless = false;
  static constexpr bool kCodesWeights = false;
  static constexpr float kLargest = kLargestFloat;
  static constexpr int kBits = Formula::kBits;
  static constexpr size_t kPerByte = 8 / kBits;
  static constexpr size_t kStride = kBucket / kPerByte;
  static constexpr size_t kCodesAt = 4;

  static constexpr size_t Bytes(size_t count) {
    return kCodesAt + (count < kStride ? count : kStride);
  }

  KUMO_ALWAYS_INLINE static void Encode(const float* u, BucketFacts facts, float* residual,
                                        unsigned char* out) {
    if constexpr (Formula::kNeedsSquares) {
      facts.sum_of_squares = SumOfSquares(u, facts.count, BucketFacts::UnitOf(facts.absmax_bits));
    }
    const Formula formula = Formula::Of(facts);
    __builtin_memcpy(out, &formula.scale, kCodesAt);
    const auto count = static_cast<size_t>(facts.count);
    if constexpr (kPerByte == 1) {
      MakeCodes(formula, u, count, residual, out + kCodesAt);
    } else {
      alignas(64) unsigned char codes[kBucket];
      MakeCodes(formula, u, count, residual, codes);
      if (count < kBucket) __builtin_memset(codes + count, 0, kBucket - count);
      Pack(codes, Bytes(count) - kCodesAt, out + kCodesAt);
    }
  }

  KUMO_ALWAYS_INLINE static void MakeCodes(const Formula& formula, const float* u, size_t count,
                                           float* residual, unsigned char* codes) {
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) {
      codes[i] = static_cast<unsigned char>(formula.CodeOf(u[i], static_cast<int>(i)));
    }
    if (residual == nullptr) return;
    const float scale = formula.scale;
    // A loop of its own: with the one above, compilers take a branch for each code that is cut off.
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) residual[i] = u[i] - Formula::ValueOf(codes[i]) * scale;
  }

  KUMO_ALWAYS_INLINE static void Pack(const unsigned char* codes, size_t bytes,
                                      unsigned char* out) {
    constexpr unsigned kMask = (1u << kBits) - 1u;
    KUMO_VECTOR_LOOP
    for (size_t j = 0; j < bytes; ++j) {
      unsigned packed = 0;
      for (size_t k = 0; k < kPerByte; ++k)
        packed |= (codes[j + k * kStride] & kMask) << (k * kBits);
      out[j] = static_cast<unsigned char>(packed);
    }
  }

  // In 16 lanes, whatever the level.
  KUMO_ALWAYS_INLINE static float SumOfSquares(const float* u, int count, float unit) {
    FloatLanes lanes;
    const auto add = [&lanes, unit](const float* from) KUMO_INLINE_LAMBDA {
      for (int p = 0; p < kParts; ++p) {
        const FloatPart x = LoadPart(from + kPartLanes * p) * unit;
        lanes.part[p] += x * x;
      }
    };
    int i = 0;
    for (; i + kLanes <= count; i += kLanes) add(u + i);
    if (i < count) {
      alignas(64) float rest[kLanes] = {};
      for (int l = 0; i + l < count; ++l) rest[l] = u[i + l];
      add(rest);
    }
    return SumOfLanes(lanes);
  }

  // Calls use(i, value) for each number, `value` without the scale.
  template <typename Use>
  KUMO_ALWAYS_INLINE static void ForEachValue(const unsigned char* in, size_t count, Use use) {
    const unsigned char* const codes = in + kCodesAt;
    for (size_t k = 0; k < kPerByte; ++k) {
      const size_t first = k * kStride;
      if (first >= count) return;
      const size_t numbers = count - first < kStride ? count - first : kStride;
      KUMO_VECTOR_LOOP
      for (size_t j = 0; j < numbers; ++j) {
        use(first + j, Formula::ValueOf(uint32_t{codes[j]} >> (k * kBits)));
      }
    }
  }

  KUMO_ALWAYS_INLINE static float Scale(const unsigned char* in) {
    float scale;
    __builtin_memcpy(&scale, in, kCodesAt);
    return scale;
  }

  KUMO_ALWAYS_INLINE static void Decode(const unsigned char* in, size_t count, float* out) {
    const float scale = Scale(in);
    ForEachValue(in, count, [scale, out](size_t i, float value) KUMO_INLINE_LAMBDA {
      out[i] = value * scale;
    });
  }

  KUMO_ALWAYS_INLINE static void DecodeAdd(const unsigned char* in, size_t count, float factor,
                                           float* sum) {
    const float scale = Scale(in);
    ForEachValue(in, count, [scale, factor, sum](size_t i, float value) KUMO_INLINE_LAMBDA {
      sum[i] += factor * (value * scale);
    });
  }

  KUMO_ALWAYS_INLINE static bool Finite(const unsigned char* in, size_t) {
    const float scale = Scale(in);
    // False for NaN.
    return scale >= -Formula::kLargestScale && scale <= Formula::kLargestScale;
  }
};

}  // namespace kumo::KUMO_ISA
