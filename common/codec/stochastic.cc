// Codecs int8_stochastic and int4_stochastic: int8's and int4's bytes, rounded at random without
// bias.
#include "common/codec/packed.h"

namespace kumo::KUMO_ISA {

struct Int8Stochastic : PackedFormat<StochasticFormula<8>> {
  static constexpr CodecId kId = CodecId::kInt8Stochastic;
  static constexpr const char* kName = "int8_stochastic";
  static constexpr const char* kHelp = "int8, rounded at random without bias";
};

struct Int4Stochastic : PackedFormat<StochasticFormula<4>> {
  static constexpr CodecId kId = CodecId::kInt4Stochastic;
  static constexpr const char* kName = "int4_stochastic";
  static constexpr const char* kHelp = "int4, rounded at random without bias";
};

extern const CodecKernel kInt8Stochastic;
constinit const CodecKernel kInt8Stochastic = KernelOf<Int8Stochastic>();
extern const CodecKernel kInt4Stochastic;
constinit const CodecKernel kInt4Stochastic = KernelOf<Int4Stochastic>();

}  // namespace kumo::KUMO_ISA
