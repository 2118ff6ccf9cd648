#include "server/rules/difference.h"

#include <algorithm>
#include <cstring>

#include <glog/logging.h>

#include "server/rules/kernel_table.h"
#include "server/rules/rule.h"

namespace kumo {
namespace {

// Numbers of a piece: they are subtracted, encoded and decoded while they stay in a cache. A chunk
// that is cut at a group's boundary has the bytes of its parts. Pieces of two buckets take a
// seventh longer than pieces of one: the processor waits at each turn from one array to the next
// (aggregate.cc). Codecs of larger groups begin each group with what the one before has shown, so
// their pieces are several groups.
constexpr size_t kLongPiece = 16384;

size_t PieceLength(const Codec& codec) {
  return codec.group() > Codec::kBucket ? kLongPiece / codec.group() * codec.group()
                                        : Codec::kBucket;
}

}  // namespace

int64_t EncodeDifference(const Codec& codec, EncodeContext context, std::span<const float> next,
                         std::span<const float> before, std::span<float> copy,
                         std::span<std::byte> coded, bool stream) {
  CHECK_EQ(before.size(), next.size());
  CHECK_EQ(copy.size(), next.size());
  CHECK_EQ(coded.size(), codec.EncodedBytes(next.size()));
  static const RuleKernels& kernels = RuleKernelsAt(DetectIsa());
  alignas(64) float piece[kLongPiece];
  const size_t length = PieceLength(codec);
  CHECK_GT(length, 0u);
  context.most = codec.MostWithoutLoss(/*has_residual=*/false);
  size_t at = 0;
  for (size_t first = 0; first < next.size(); first += length) {
    const size_t count = std::min(length, next.size() - first);
    for (size_t i = 0; i < count; ++i) piece[i] = next[first + i] - before[first + i];
    const std::span<std::byte> bytes = coded.subspan(at, codec.EncodedBytes(count));
    const int64_t bad = codec.EncodeIn(context, {piece, count}, {}, bytes);
    if (bad >= 0) return static_cast<int64_t>(first) + bad;
    std::memcpy(piece, before.data() + first, count * sizeof(float));
    codec.DecodeAdd(bytes, count, 0, 1.0f, {piece, count});
    if (stream) {
      kernels.stream(piece, copy.data() + first, count);
    } else {
      std::memcpy(copy.data() + first, piece, count * sizeof(float));
    }
    at += bytes.size();
    context.first += count;
  }
  if (stream) FenceStreams();
  return -1;
}

}  // namespace kumo
