// Codec fp16: IEEE binary16, rounded to nearest even, saturating at +-65504.
//
// From x86-64-v3 on the processor's own conversions (F16C) do whole vectors. They give the bits of
// the formula, except that a signalling NaN, which Codec::Check refuses, becomes a quiet one.
#include <cstddef>
#include <cstdint>

#include "common/base/lanes.h"
#include "common/codec/half.h"

namespace kumo::KUMO_ISA {

struct Fp16 : HalfFormat<Binary16> {
  static constexpr CodecId kId = CodecId::kFp16;
  static constexpr const char* kName = "fp16";
  static constexpr const char* kHelp = "IEEE half precision";
  static constexpr bool kCodesWeights = true;
  static constexpr float kLargest = 65504.0f;

#if defined(__F16C__)
  using Formula = HalfFormat<Binary16>;
  typedef int16_t HalfPart __attribute__((vector_size(kPartLanes * 2)));

  KUMO_ALWAYS_INLINE static HalfPart FromFloats(FloatPart x) {
    constexpr int kToNearestEven = 0;
    const FloatPart largest = FloatPart{} + kLargest;
    x = x < largest ? x : largest;
    x = x > -largest ? x : -largest;
#if defined(__AVX512F__)
    return __builtin_ia32_vcvtps2ph512_mask(x, kToNearestEven, HalfPart{}, -1);
#else
    return __builtin_ia32_vcvtps2ph256(x, kToNearestEven);
#endif
  }

  KUMO_ALWAYS_INLINE static FloatPart ToFloats(HalfPart halves) {
#if defined(__AVX512F__)
    constexpr int kCurrentRounding = 4;  // the conversion is exact
    return __builtin_ia32_vcvtph2ps512_mask(halves, FloatPart{}, -1, kCurrentRounding);
#else
    return __builtin_ia32_vcvtph2ps256(halves);
#endif
  }

  KUMO_ALWAYS_INLINE static HalfPart LoadHalves(const unsigned char* in, size_t i) {
    HalfPart halves;
    __builtin_memcpy(&halves, in + 2 * i, sizeof(halves));
    return halves;
  }

  KUMO_ALWAYS_INLINE static void Encode(const float* u, size_t count, uint32_t absmax_bits,
                                        float* residual, unsigned char* out) {
    size_t i = 0;
    for (; i + kPartLanes <= count; i += kPartLanes) {
      const FloatPart x = LoadPart(u + i);
      const HalfPart halves = FromFloats(x);
      __builtin_memcpy(out + 2 * i, &halves, sizeof(halves));
      if (residual != nullptr) StorePart(x - ToFloats(halves), residual + i);
    }
    Formula::Encode(u + i, count - i, absmax_bits, residual == nullptr ? nullptr : residual + i,
                    out + 2 * i);
  }

  KUMO_ALWAYS_INLINE static void Decode(const unsigned char* in, size_t count, float* out) {
    size_t i = 0;
    for (; i + kPartLanes <= count; i += kPartLanes)
      StorePart(ToFloats(LoadHalves(in, i)), out + i);
    Formula::Decode(in + 2 * i, count - i, out + i);
  }

  KUMO_ALWAYS_INLINE static void DecodeAdd(const unsigned char* in, size_t count, float scale,
                                           float* sum) {
    size_t i = 0;
    for (; i + kPartLanes <= count; i += kPartLanes) {
      StorePart(LoadPart(sum + i) + scale * ToFloats(LoadHalves(in, i)), sum + i);
    }
    Formula::DecodeAdd(in + 2 * i, count - i, scale, sum + i);
  }
#endif
};

extern const CodecKernel kFp16;
constinit const CodecKernel kFp16 = KernelOf<Fp16>();

}  // namespace kumo::KUMO_ISA
