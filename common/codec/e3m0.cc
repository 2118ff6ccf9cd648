// Codec e3m0: a sign and a power of two, 3 bits of exponent, and a scale per bucket.
#include "common/codec/packed.h"

namespace kumo::KUMO_ISA {

struct E3m0 : PackedFormat<E3m0Formula> {
  static constexpr CodecId kId = CodecId::kE3m0;
  static constexpr const char* kName = "e3m0";
  static constexpr const char* kHelp = "4 bits a number, powers of two, a scale per 512";
};

extern const CodecKernel kE3m0;
constinit const CodecKernel kE3m0 = KernelOf<E3m0>();

}  // namespace kumo::KUMO_ISA
