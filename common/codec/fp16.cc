// Codec fp16: IEEE binary16, rounded to nearest even, saturating at +-65504.
#include <cstdint>

#include "common/codec/half.h"

namespace kumo::KUMO_ISA {

struct Binary16 {
  static constexpr uint16_t kInfinity = 0x7c00u;
  static constexpr uint32_t kLargest = 0x477fe000u;         // 65504 as float32 bits
  static constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14
  static constexpr uint32_t kRebias = (127u - 15u) << 23;

  // After F. Giesen, "Float->half variants": normal numbers are rounded in the integer, subnormal
  // ones by adding 0.5, whose last place is binary16's smallest number.
  KUMO_ALWAYS_INLINE static uint16_t FromFloat(float x) {
    const uint32_t bits = BitsOf(x);
    uint32_t magnitude = bits & 0x7fffffffu;
    magnitude = magnitude < kLargest ? magnitude : kLargest;
    const uint32_t normal = (magnitude - kRebias + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
    const uint32_t half = magnitude < kSmallestNormal ? subnormal : normal;
    return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
  }

  KUMO_ALWAYS_INLINE static float ToFloat(uint16_t half) {
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

struct Fp16 : HalfFormat<Binary16> {
  static constexpr CodecId kId = CodecId::kFp16;
  static constexpr const char* kName = "fp16";
  static constexpr const char* kHelp = "IEEE half precision";
  static constexpr float kLargest = 65504.0f;
};

extern const CodecKernel kFp16;
constinit const CodecKernel kFp16 = KernelOf<Fp16>();

}  // namespace kumo::KUMO_ISA
