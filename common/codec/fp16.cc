// Codec fp16: IEEE binary16, rounded to nearest even, saturating at +-65504.

#include "common/codec/half.h"

namespace kumo::KUMO_ISA {

struct Fp16 : HalfFormat<Binary16> {
  static constexpr CodecId kId = CodecId::kFp16;
  static constexpr const char* kName = "fp16";
  static constexpr const char* kHelp = "IEEE half precision";
  static constexpr bool kCodesWeights = true;
  static constexpr float kLargest = 65504.0f;
};

extern const CodecKernel kFp16;
constinit const CodecKernel kFp16 = KernelOf<Fp16>();

}  // namespace kumo::KUMO_ISA
