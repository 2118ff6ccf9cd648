// Codec int4: a scale per bucket, absmax / 7, and codes rounded to nearest even.
#include "common/codec/packed.h"

namespace kumo::KUMO_ISA {

struct Int4 : PackedFormat<NearestFormula<4>> {
  static constexpr CodecId kId = CodecId::kInt4;
  static constexpr const char* kName = "int4";
  static constexpr const char* kHelp = "4 bits a number, a scale per 512";
};

extern const CodecKernel kInt4;
constinit const CodecKernel kInt4 = KernelOf<Int4>();

}  // namespace kumo::KUMO_ISA
