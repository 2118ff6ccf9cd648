// Codecs of packed formats: a scale per bucket, and 2, 4 or 8 bits a number. The formulas
// (formulas.h, "A packed formula") say what the codes mean.
//
// With s = kBucket / (8 / bits), byte j of the codes holds numbers j, s + j, 2 s + j .. of the
// bucket, the first in the lowest bits. So a byte is made of numbers at the same place of several
// vectors, and nothing is moved across lanes. A shorter last bucket has one byte for each number,
// at most s.
//
// Encoding makes codes of a byte each in a buffer of the first cache, then packs them.
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

// Codec int4: a scale per bucket, absmax / 7, and codes rounded to nearest even.
struct Int4 : PackedFormat<NearestFormula<4>> {
  static constexpr CodecId kId = CodecId::kInt4;
  static constexpr const char* kName = "int4";
  static constexpr const char* kHelp = "4 bits a number, a scale per 512";
};

extern const CodecKernel kInt4;
constinit const CodecKernel kInt4 = KernelOf<Int4>();

// Codec e3m0: a sign and a power of two, 3 bits of exponent, and a scale per bucket.
struct E3m0 : PackedFormat<E3m0Formula> {
  static constexpr CodecId kId = CodecId::kE3m0;
  static constexpr const char* kName = "e3m0";
  static constexpr const char* kHelp = "4 bits a number, powers of two, a scale per 512";
};

extern const CodecKernel kE3m0;
constinit const CodecKernel kE3m0 = KernelOf<E3m0>();

// Codec 2bit: +T, -T or 0 with one threshold T for all numbers, after MXNet's gradient compression.
struct TwoBit : PackedFormat<ThresholdFormula> {
  static constexpr CodecId kId = CodecId::kTwoBit;
  static constexpr const char* kName = "2bit";
  static constexpr const char* kHelp = "the threshold, its negative or 0 in 2 bits a number";
};

// A threshold is chosen for contributions; the weights move by other sizes.
extern const CodecKernel kTwoBit;
constinit const CodecKernel kTwoBit =
    KernelOf<TwoBit>({.codes_pulls = false, .needs_feedback = true, .has_threshold = true});

// Codecs int8_stochastic and int4_stochastic: int8's and int4's bytes, rounded at random without
// bias.
struct Int8Stochastic : PackedFormat<StochasticFormula<8>> {
  static constexpr CodecId kId = CodecId::kInt8Stochastic;
  static constexpr const char* kName = "int8_stochastic";
  static constexpr const char* kHelp = "int8, rounded at random without bias";
};

struct Int4Stochastic : PackedFormat<StochasticFormula<4>> {
  static constexpr CodecId kId = CodecId::kInt4Stochastic;
  static constexpr const char* kName = "int4_stochastic";
  static constexpr const char* kHelp = "int4, rounded at random without bias";
};

extern const CodecKernel kInt8Stochastic;
constinit const CodecKernel kInt8Stochastic = KernelOf<Int8Stochastic>();
extern const CodecKernel kInt4Stochastic;
constinit const CodecKernel kInt4Stochastic = KernelOf<Int4Stochastic>();

// Codecs int8_cntk, int4_cntk and 2bit_cntk: CNTK's convention for n bits, a range of 4 standard
// deviations to both sides of 0.
struct Int8Cntk : PackedFormat<CntkFormula<8>> {
  static constexpr CodecId kId = CodecId::kInt8Cntk;
  static constexpr const char* kName = "int8_cntk";
  static constexpr const char* kHelp = "8 bits a number within 4 sigma, CNTK's convention";
};

struct Int4Cntk : PackedFormat<CntkFormula<4>> {
  static constexpr CodecId kId = CodecId::kInt4Cntk;
  static constexpr const char* kName = "int4_cntk";
  static constexpr const char* kHelp = "4 bits a number within 4 sigma, CNTK's convention";
};

struct TwoBitCntk : PackedFormat<CntkFormula<2>> {
  static constexpr CodecId kId = CodecId::kTwoBitCntk;
  static constexpr const char* kName = "2bit_cntk";
  static constexpr const char* kHelp = "2 bits a number within 4 sigma, CNTK's convention";
};

extern const CodecKernel kInt8Cntk;
constinit const CodecKernel kInt8Cntk = KernelOf<Int8Cntk>();
extern const CodecKernel kInt4Cntk;
constinit const CodecKernel kInt4Cntk = KernelOf<Int4Cntk>();
extern const CodecKernel kTwoBitCntk;
constinit const CodecKernel kTwoBitCntk = KernelOf<TwoBitCntk>();

}  // namespace kumo::KUMO_ISA
