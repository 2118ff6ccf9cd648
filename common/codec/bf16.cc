// Codec bf16: the upper half of a float32, two bytes for each element.
//
// The formula is BFloat16's (formulas.h). Adding 0x7fff and the lowest bit that is kept, then
// cutting the lower half off, rounds to nearest even: the carry runs through the exponent, too. A
// magnitude that would become infinity becomes the largest finite one instead. Decoding appends 16
// zero bits.
//
// The loops are HalfFormat's (half.h). There is no scale, so elements stand by themselves, and
// ranges of 32 elements can be decoded (kShortGranule).

#include "common/codec/half.h"

namespace kumo::KUMO_ISA {

struct Bf16 : HalfFormat<BFloat16> {
  static constexpr CodecId kId = CodecId::kBf16;
  static constexpr const char* kName = "bf16";
  static constexpr const char* kHelp = "the upper half of a float32";
  static constexpr bool kCodesWeights = false;
  // All finite float32: magnitudes above bf16's largest number become this number.
  static constexpr float kLargest = kLargestFloat;
};

extern const CodecKernel kBf16;
constinit const CodecKernel kBf16 = KernelOf<Bf16>();

}  // namespace kumo::KUMO_ISA
