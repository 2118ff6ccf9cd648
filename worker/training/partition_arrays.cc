#include "worker/training/partition_arrays.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/buffer.h"

namespace kumo {
namespace {

size_t BytesOf(Range range) { return static_cast<size_t>(range.size()) * sizeof(float); }

}  // namespace

bool PartitionArrays::Adopt(const AdoptAction& adopt, const ShardMap& map) {
  Arrays& arrays = held_[adopt.partition] = {};
  const int64_t size = layout_.size();
  if (kinds_.residual > 0) arrays.residual = {*backend_, size, "a partition's residual"};
  if (kinds_.way > 0) arrays.way = {*backend_, size, "a partition's way from the weights"};
  arrays.optimiser = {*backend_, kinds_.optimiser_slots * size, "a partition's optimiser state"};
  const int first_slot = kinds_.first_slot();
  const auto is_slot = [&](const CarriedArray& array) { return array.index >= first_slot; };
  const auto trained =
      std::ranges::count_if(map.chunks(), [](const Chunk& c) { return c.trained(); });
  const bool lost = std::ranges::count_if(adopt.arrays, is_slot) < trained * kinds_.optimiser_slots;
  for (const CarriedArray& array : adopt.arrays) {
    if (lost && is_slot(array)) continue;
    const Range range = map.chunks()[array.chunk].range;
    backend_->Write(array.payload.bytes.data(), BytesOf(range),
                    Vectors(arrays)[array.index] + range.begin);
  }
  return lost;
}

// In the order of CarriedArrays.
std::vector<float*> PartitionArrays::Vectors(Arrays& arrays) const {
  std::vector<float*> vectors;
  if (kinds_.residual > 0) vectors.push_back(arrays.residual.data());
  if (kinds_.way > 0) vectors.push_back(arrays.way.data());
  for (int i = 0; i < kinds_.optimiser_slots; ++i) {
    vectors.push_back(arrays.optimiser.data() + i * layout_.size());
  }
  return vectors;
}

int PartitionArrays::Next(int partition) const {
  const auto next = held_.upper_bound(partition);
  return next == held_.end() ? -1 : next->first;
}

Result<std::vector<CarriedArray>> PartitionArrays::Copies(Arrays& arrays, const ShardMap& map,
                                                          const ChangeSlot& change) const {
  const std::vector<float*> vectors = Vectors(arrays);
  std::vector<CarriedArray> copies;
  for (const Chunk& chunk : map.chunks()) {
    if (!chunk.trained()) continue;
    for (size_t i = 0; i < vectors.size(); ++i) {
      auto copy = std::make_shared<Buffer<float>>(chunk.range.size());
      KUMO_RETURN_IF_ERROR(
          backend_->Read(vectors[i] + chunk.range.begin, BytesOf(chunk.range), copy->data()));
      if (const int slot = static_cast<int>(i) - kinds_.first_slot(); slot >= 0 && change) {
        change(slot, chunk.range, copy->span());
      }
      Payload payload{copy, std::as_bytes(std::as_const(*copy).span())};
      copies.push_back({chunk.index, static_cast<int>(i), std::move(payload)});
    }
  }
  return copies;
}

}  // namespace kumo
