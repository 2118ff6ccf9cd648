// Codec int8: a bucket of 512 elements becomes a scale (float32) and a signed byte for each
// element.
//
//   scale = absmax / 127,   code = round(u / scale), to nearest even,   decoded: code * scale
//
// The formulas are IntegerFormula's (formulas.h). Encoding multiplies by 1 / scale, clamps to
// +-127, and adds 1.5 * 2^23: the sum has no bits left for fractions, so the addition itself
// rounds, and its low bits are the code. The same sum minus 1.5 * 2^23 is the rounded number, from
// which the residual follows without decoding the byte.
//
// A short bucket at a chunk's end is padded with zeros to 512, so the encoding loop has a constant
// length. No byte decodes to infinity if |scale| <= FLT_MAX / 128. So the check of a received
// bucket reads its scale only.
#include <cstdint>

#include "common/codec/bucket.h"

namespace kumo::KUMO_ISA {

struct Int8 : Int8Formula {
  static constexpr CodecId kId = CodecId::kInt8;
  static constexpr const char* kName = "int8";
  static constexpr const char* kHelp = "8 bits a number, a scale per 512";
  static constexpr bool kLossless = false;
  static constexpr bool kCodesWeights = false;
  static constexpr float kLargest = kLargestFloat;
  static constexpr size_t Bytes(size_t count) { return 4 + count; }

  KUMO_ALWAYS_INLINE static void Encode(const float* u, size_t count, uint32_t absmax_bits,
                                        float* residual, unsigned char* out) {
    const float scale = ScaleOf(FloatOf(absmax_bits));
    const float inverse = InverseOf(scale);
    __builtin_memcpy(out, &scale, 4);
    if (count == kBucket) {
      EncodeCodes(u, scale, inverse, residual, out + 4);
      return;
    }
    alignas(64) float padded[kBucket] = {};
    alignas(64) float error[kBucket];
    unsigned char codes[kBucket];
    __builtin_memcpy(padded, u, count * sizeof(float));
    EncodeCodes(padded, scale, inverse, residual == nullptr ? nullptr : error, codes);
    __builtin_memcpy(out + 4, codes, count);
    if (residual != nullptr) __builtin_memcpy(residual, error, count * sizeof(float));
  }

  // Codes of kBucket numbers.
  KUMO_ALWAYS_INLINE static void EncodeCodes(const float* u, float scale, float inverse,
                                             float* residual, unsigned char* codes) {
    for (size_t i = 0; i < kBucket; i += kLanes) {
      IntLanes integers;
      for (int p = 0; p < kParts; ++p) {
        const size_t at = i + p * kPartLanes;
        const FloatPart x = LoadPart(u + at);
        const FloatPart shifted = Shifted(x, inverse);
        integers.part[p] = BitsOf(shifted) - static_cast<int32_t>(BitsOf(kRound));
        if (residual != nullptr) StorePart(ErrorOf(x, shifted, scale), residual + at);
      }
      StoreBytes(integers, codes + i);
    }
  }

  KUMO_ALWAYS_INLINE static float Scale(const unsigned char* in) {
    float scale;
    __builtin_memcpy(&scale, in, 4);
    return scale;
  }
  KUMO_ALWAYS_INLINE static float Code(const unsigned char* in, size_t i) {
    return static_cast<float>(static_cast<int8_t>(in[4 + i]));
  }

  KUMO_ALWAYS_INLINE static void Decode(const unsigned char* in, size_t count, float* out) {
    const float scale = Scale(in);
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) out[i] = Code(in, i) * scale;
  }

  KUMO_ALWAYS_INLINE static void DecodeAdd(const unsigned char* in, size_t count, float factor,
                                           float* sum) {
    const float scale = Scale(in);
    ForEachBlock(
        count,
        [in, scale, factor, sum](size_t begin, size_t end) KUMO_INLINE_LAMBDA {
          KUMO_VECTOR_LOOP
          for (size_t i = begin; i < end; ++i) sum[i] += factor * (Code(in, i) * scale);
        },
        in);
  }

  KUMO_ALWAYS_INLINE static bool Finite(const unsigned char* in, size_t) {
    const float scale = Scale(in);
    return scale >= -kLargestScale && scale <= kLargestScale;  // false for NaN
  }
};

extern const CodecKernel kInt8;
constinit const CodecKernel kInt8 = KernelOf<Int8>();

}  // namespace kumo::KUMO_ISA
