// Codec bf16: the upper half of a float32, rounded to nearest even, saturating.
#include <cstdint>

#include "common/codec/half.h"

namespace kumo::KUMO_ISA {

struct BFloat16 {
  static constexpr uint16_t kInfinity = 0x7f80u;

  KUMO_ALWAYS_INLINE static uint16_t FromFloat(float x) {
    const uint32_t bits = BitsOf(x);
    const uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t half = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16;
    half = half < kInfinity ? half : kInfinity - 1u;
    return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
  }

  KUMO_ALWAYS_INLINE static float ToFloat(uint16_t half) { return FloatOf(uint32_t{half} << 16); }
};

struct Bf16 : HalfFormat<BFloat16> {
  static constexpr CodecId kId = CodecId::kBf16;
  static constexpr const char* kName = "bf16";
  static constexpr const char* kHelp = "the upper half of a float32";
  static constexpr float kLargest = kLargestFloat;  // all but half a step of its last place
};

extern const CodecKernel kBf16;
constinit const CodecKernel kBf16 = KernelOf<Bf16>();

}  // namespace kumo::KUMO_ISA
