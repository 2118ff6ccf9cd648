// Codec 2bit: +T, -T or 0 with one threshold T for all numbers, after MXNet's gradient compression.
#include "common/codec/packed.h"

namespace kumo::KUMO_ISA {

struct TwoBit : PackedFormat<ThresholdFormula> {
  static constexpr CodecId kId = CodecId::kTwoBit;
  static constexpr const char* kName = "2bit";
  static constexpr const char* kHelp = "the threshold, its negative or 0 in 2 bits a number";
};

// A threshold is chosen for contributions; the weights move by other sizes.
extern const CodecKernel kTwoBit;
constinit const CodecKernel kTwoBit =
    KernelOf<TwoBit>({.codes_pulls = false, .needs_feedback = true, .has_threshold = true});

}  // namespace kumo::KUMO_ISA
