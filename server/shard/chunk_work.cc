#include "server/shard/chunk_work.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/rules/aggregate.h"

namespace kumo {

FloatArray MakeArray(size_t numbers) { return std::make_shared<Buffer<float>>(numbers); }

FloatArray CopyFloats(std::span<const std::byte> bytes) {
  FloatArray array = MakeArray(bytes.size() / sizeof(float));
  std::memcpy(array->data(), bytes.data(), bytes.size());
  return array;
}

Payload BytesOf(const FloatArray& array) {
  return {array, std::as_bytes(std::as_const(*array).span())};
}

CodedStart EncodeStart(const Codec& codec, const Buffer<float>& start) {
  auto bytes = std::make_shared<Buffer<std::byte>>(codec.EncodedBytes(start.size()));
  const float most = codec.MostWithoutLoss(/*has_residual=*/false);
  const int64_t bad = codec.EncodeUpTo(most, start.span(), {}, bytes->span());
  return {std::move(bytes), bad};
}

void ChunkWork::Run() {
  std::vector<Contribution> ready;
  for (const ArrivedContribution& c : contributions) {
    ready.push_back({c.codec, c.payload.bytes, c.samples});
  }
  if (!closes()) {
    if (!sum_holds_numbers) sum->Zero();
    Accumulate(ready, sum->span());
    return;
  }
  ChunkArrays arrays;
  arrays.n = numbers;
  arrays.partial_sum = sum_holds_numbers ? sum->data() : nullptr;
  arrays.stream = stream;
  arrays.start = start->data();
  arrays.next_start = next_start->data();
  if (rule->keeps_weights_apart()) {
    arrays.weights = weights->data();
    arrays.next_weights = next_weights->data();
  }
  for (int i = 0; i < rule->slots(); ++i) arrays.slots[i] = slots[i]->data();
  AggregateAndApply(*rule, info, ready, arrays);
  if (pull_codec != nullptr) coded_start = EncodeStart(*pull_codec, *next_start);
  if (!copy_slots) return;
  for (const FloatArray& slot : slots) {
    auto copy = std::make_shared<Buffer<float>>(numbers);
    std::copy_n(slot->data(), numbers, copy->data());
    slot_copies.push_back(std::move(copy));
  }
}

}  // namespace kumo
