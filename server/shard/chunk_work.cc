#include "server/shard/chunk_work.h"

#include <cstring>
#include <utility>

namespace kumo {

CodedNumbers EncodeForPulls(const Codec& codec, const Buffer<float>& numbers) {
  auto bytes = std::make_shared<Buffer<std::byte>>(codec.EncodedBytes(numbers.size()));
  const float most = codec.MostWithoutLoss(/*has_residual=*/false);
  const int64_t bad = codec.EncodeUpTo(most, numbers.span(), {}, bytes->span());
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
  if (pull_codec != nullptr) EncodeNext();
}

// The difference is taken to the workers' copy, not to the last start, so what the codec has lost
// before is part of it: error feedback without a residual.
void ChunkWork::EncodeNext() {
  if (pull_codec->codes_weights()) {
    CodedNumbers coded = EncodeForPulls(*pull_codec, *next.start);
    next.coded = std::move(coded.bytes);
    first_bad = coded.first_bad;
    return;
  }
  const Buffer<float>& before = *current.copy();
  Buffer<float>& copy = *next.worker_copy;
  for (size_t i = 0; i < elements; ++i) copy[i] = (*next.start)[i] - before[i];
  CodedNumbers coded = EncodeForPulls(*pull_codec, copy);
  next.coded = std::move(coded.bytes);
  first_bad = coded.first_bad;
  std::memcpy(copy.data(), before.data(), elements * sizeof(float));
  pull_codec->DecodeAdd(std::as_const(*next.coded).span(), elements, 0, 1.0f, copy.span());
}

}  // namespace kumo
