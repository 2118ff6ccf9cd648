#include "server/shard/chunk_work.h"

#include <utility>

namespace kumo {

CodedStart EncodeStart(const Codec& codec, const Buffer<float>& start) {
  auto bytes = std::make_shared<Buffer<std::byte>>(codec.EncodedBytes(start.size()));
  const float most = codec.MostWithoutLoss(/*has_residual=*/false);
  const int64_t bad = codec.EncodeUpTo(most, start.span(), {}, bytes->span());
  return {std::move(bytes), bad};
}

void ChunkWork::Run() {
  if (!closes()) {
    if (!sum_holds_contributions) sum->Zero();
    Accumulate(contributions, sum->span());
    return;
  }
  if (current.exists()) MakeNext();
  if (freeze) frozen = Frozen(next);
}

void ChunkWork::MakeNext() {
  RuleArrays arrays;
  arrays.n = elements;
  arrays.stream = stream;
  arrays.start = current.start->data();
  arrays.next_start = next.start->data();
  if (rule->keeps_weights_apart()) {
    arrays.weights = current.weights->data();
    arrays.next_weights = next.weights->data();
  }
  for (int i = 0; i < rule->slots(); ++i) arrays.slots[i] = next.slots[i]->data();
  const float* const earlier = sum_holds_contributions ? sum->data() : nullptr;
  AggregateAndApply(*rule, info, earlier, contributions, arrays);
  if (pull_codec != nullptr) {
    CodedStart coded = EncodeStart(*pull_codec, *next.start);
    next.coded_start = std::move(coded.bytes);
    first_bad = coded.first_bad;
  }
}

}  // namespace kumo
