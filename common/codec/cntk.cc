// Codecs int8_cntk, int4_cntk and 2bit_cntk: CNTK's convention for n bits, a range of 4 standard
// deviations to both sides of 0.
#include "common/codec/packed.h"

namespace kumo::KUMO_ISA {

struct Int8Cntk : PackedFormat<CntkFormula<8>> {
  static constexpr CodecId kId = CodecId::kInt8Cntk;
  static constexpr const char* kName = "int8_cntk";
  static constexpr const char* kHelp = "8 bits a number within 4 sigma, CNTK's convention";
};

struct Int4Cntk : PackedFormat<CntkFormula<4>> {
  static constexpr CodecId kId = CodecId::kInt4Cntk;
  static constexpr const char* kName = "int4_cntk";
  static constexpr const char* kHelp = "4 bits a number within 4 sigma, CNTK's convention";
};

struct TwoBitCntk : PackedFormat<CntkFormula<2>> {
  static constexpr CodecId kId = CodecId::kTwoBitCntk;
  static constexpr const char* kName = "2bit_cntk";
  static constexpr const char* kHelp = "2 bits a number within 4 sigma, CNTK's convention";
};

extern const CodecKernel kInt8Cntk;
constinit const CodecKernel kInt8Cntk = KernelOf<Int8Cntk>();
extern const CodecKernel kInt4Cntk;
constinit const CodecKernel kInt4Cntk = KernelOf<Int4Cntk>();
extern const CodecKernel kTwoBitCntk;
constinit const CodecKernel kTwoBitCntk = KernelOf<TwoBitCntk>();

}  // namespace kumo::KUMO_ISA
