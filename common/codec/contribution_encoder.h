// Encoder of a contribution: chunks in the order of the flat vector, each with its codec. Codecs of
// tensors (Codec::of_tensors) are quantised when all chunks are known.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/topk2bit_codec.h"

namespace kumo {

class ContributionEncoder {
 public:
  // As Codec::EncodeIn. If the codec is one of tensors, a residual is required, and `residual` and
  // `out` are unspecified until Finish; they must outlive that.
  [[nodiscard]] int64_t Encode(const Codec& codec, const EncodeContext& context,
                               std::span<const float> x, std::span<float> residual,
                               std::span<std::byte> out);
  // All chunks of the tensors are encoded. The next contribution may follow.
  void Finish();

 private:
  std::vector<Topk2bitCodec::Selection> selections_;
};

}  // namespace kumo
