#include "common/codec/contribution_encoder.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kumo {

namespace {

// Numbers of a difference that are made and encoded at a time, while they stay in a cache; a
// multiple of every codec's group.
constexpr size_t kPiece = 16384;

int64_t EncodePieces(const Codec& codec, EncodeContext context, std::span<const float> x,
                     const float* minus, std::span<float> residual, std::span<std::byte> out) {
  alignas(64) std::array<float, kPiece> piece;
  for (size_t begin = 0; begin < x.size(); begin += kPiece) {
    const size_t count = std::min(kPiece, x.size() - begin);
    for (size_t i = 0; i < count; ++i) piece[i] = x[begin + i] - minus[begin + i];
    const std::span<std::byte> bytes = out.first(codec.EncodedBytes(count));
    const int64_t bad =
        codec.EncodeIn(context, {piece.data(), count},
                       residual.empty() ? residual : residual.subspan(begin, count), bytes);
    if (bad >= 0) return static_cast<int64_t>(begin) + bad;
    out = out.subspan(bytes.size());
    context.first += count;
  }
  return -1;
}

}  // namespace

int64_t ContributionEncoder::Encode(const Codec& codec, const EncodeContext& context,
                                    std::span<const float> x, const float* minus,
                                    std::span<float> residual, std::span<std::byte> out) {
  const TensorCodec* const of_tensors = codec.of_tensors();
  if (of_tensors == nullptr) {
    return minus == nullptr ? codec.EncodeIn(context, x, residual, out)
                            : EncodePieces(codec, context, x, minus, residual, out);
  }
  TensorCodec::Selection selection;
  const int64_t bad = of_tensors->Select(context, x, minus, residual, out, &selection);
  if (bad < 0) selections_.push_back(std::move(selection));
  return bad;
}

void ContributionEncoder::Finish() {
  if (selections_.empty()) return;
  selections_.front().codec->Quantise(selections_);
  selections_.clear();
}

}  // namespace kumo
