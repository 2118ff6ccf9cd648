// Codec fp32: the numbers themselves.
#include <cstdint>

#include "common/codec/bucket.h"

namespace kumo::KUMO_ISA {

struct Fp32 {
  static constexpr CodecId kId = CodecId::kFp32;
  static constexpr const char* kName = "fp32";
  static constexpr const char* kHelp = "exact";
  static constexpr bool kLossless = true;
  static constexpr size_t kGranule = kShortGranule;
  static constexpr bool kPlain = true;
  static constexpr bool kCodesWeights = true;
  static constexpr float kLargest = kLargestFloat;
  static constexpr size_t Bytes(size_t count) { return 4 * count; }

  KUMO_ALWAYS_INLINE static void Encode(const float* u, size_t count, uint32_t, float* residual,
                                        unsigned char* out) {
    __builtin_memcpy(out, u, 4 * count);
    if (residual != nullptr) __builtin_memset(residual, 0, 4 * count);
  }

  KUMO_ALWAYS_INLINE static void Decode(const unsigned char* in, size_t count, float* out) {
    __builtin_memcpy(out, in, 4 * count);
  }

  KUMO_ALWAYS_INLINE static float Load(const unsigned char* in, size_t i) {
    float value;
    __builtin_memcpy(&value, in + 4 * i, 4);
    return value;
  }

  KUMO_ALWAYS_INLINE static void DecodeAdd(const unsigned char* in, size_t count, float scale,
                                           float* sum) {
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) sum[i] += scale * Load(in, i);
  }

  KUMO_ALWAYS_INLINE static bool Finite(const unsigned char* in, size_t count) {
    uint32_t top = 0;
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) {
      const uint32_t magnitude = BitsOf(Load(in, i)) & 0x7fffffffu;
      top = magnitude > top ? magnitude : top;
    }
    return top < kInfinityBits;
  }
};

extern const CodecKernel kFp32;
constinit const CodecKernel kFp32 = KernelOf<Fp32>();

}  // namespace kumo::KUMO_ISA
