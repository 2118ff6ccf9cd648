// Encoder of a contribution: chunks in the order of the flat vector, each with its codec. Chunks
// with codecs of tensors (Codec::of_tensors), all made from one codec, are quantised when all are
// known.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/tensor_codec.h"

namespace kumo {

class ContributionEncoder {
 public:
  // Codec::EncodeIn of x, or of x - minus if `minus` is not null. If the codec is one of tensors, a
  // residual is required, and `residual` and `out` are unspecified until Finish; they must outlive
  // that.
  [[nodiscard]] int64_t Encode(const Codec& codec, const EncodeContext& context,
                               std::span<const float> x, const float* minus,
                               std::span<float> residual, std::span<std::byte> out);
  // All chunks of the tensors are encoded. The next contribution may follow.
  void Finish();

 private:
  std::vector<TensorCodec::Selection> selections_;
};

}  // namespace kumo
