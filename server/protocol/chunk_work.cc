#include "server/protocol/chunk_work.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <glog/logging.h>

#include "server/rules/difference.h"

namespace kumo {

CodedNumbers EncodeForPulls(const Codec& codec, EncodeContext context,
                            const Buffer<float>& numbers) {
  auto bytes = std::make_shared<Buffer<std::byte>>(codec.EncodedBytes(numbers.size()));
  context.most = codec.MostWithoutLoss(/*has_residual=*/false);
  const int64_t bad = codec.EncodeIn(context, numbers.span(), {}, bytes->span());
  return {std::move(bytes), bad};
}

void ChunkWork::Run() {
  if (!applies()) {
    if (!sum_holds_contributions) sum->Zero();
    Accumulate(contributions, sum->span());
    return;
  }
  if (current.exists()) MakeNext();
  if (freeze) frozen = Frozen(next);
  current = {};  // its arrays may be those that the next work writes to
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
  if (relays) next.coded = JoinedContributions();
  if (pull_codec != nullptr) EncodeNext();
}

CodedBytes ChunkWork::JoinedContributions() const {
  CHECK(!sum_holds_contributions);
  size_t bytes = 0;
  for (const CodedContribution& contribution : contributions) bytes += contribution.bytes.size();
  auto joined = std::make_shared<Buffer<std::byte>>(bytes);
  std::byte* to = joined->data();
  for (const CodedContribution& contribution : contributions) {
    to = std::ranges::copy(contribution.bytes, to).out;
  }
  return joined;
}

void ChunkWork::EncodeNext() {
  if (pull_codec->codes_weights()) {
    CodedNumbers coded = EncodeForPulls(*pull_codec, pull_context, *next.start);
    next.coded = std::move(coded.bytes);
    first_bad = coded.first_bad;
    return;
  }
  const auto bytes = std::make_shared<Buffer<std::byte>>(pull_codec->EncodedBytes(elements));
  first_bad = EncodeDifference(*pull_codec, pull_context, std::as_const(*next.start).span(),
                               std::as_const(*current.copy()).span(), next.worker_copy->span(),
                               bytes->span(), stream);
  next.coded = bytes;
}

}  // namespace kumo
