#include "common/codec/contribution_encoder.h"

namespace kumo {

int64_t ContributionEncoder::Encode(const Codec& codec, const EncodeContext& context,
                                    std::span<const float> x, std::span<float> residual,
                                    std::span<std::byte> out) {
  const TensorCodec* const of_tensors = codec.of_tensors();
  if (of_tensors == nullptr) return codec.EncodeIn(context, x, residual, out);
  TensorCodec::Selection selection;
  const int64_t bad = of_tensors->Select(context, x, residual, out, &selection);
  if (bad < 0) selections_.push_back(std::move(selection));
  return bad;
}

void ContributionEncoder::Finish() {
  if (selections_.empty()) return;
  selections_.front().codec->Quantise(selections_);
  selections_.clear();
}

}  // namespace kumo
