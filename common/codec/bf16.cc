// Codec bf16: the upper half of a float32, rounded to nearest even, saturating.

#include "common/codec/half.h"

namespace kumo::KUMO_ISA {

struct Bf16 : HalfFormat<BFloat16> {
  static constexpr CodecId kId = CodecId::kBf16;
  static constexpr const char* kName = "bf16";
  static constexpr const char* kHelp = "the upper half of a float32";
  static constexpr bool kCodesWeights = false;
  static constexpr float kLargest = kLargestFloat;  // all but half a step of its last place
};

extern const CodecKernel kBf16;
constinit const CodecKernel kBf16 = KernelOf<Bf16>();

}  // namespace kumo::KUMO_ISA
