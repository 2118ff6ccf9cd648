#include "common/checkpoint/relocation.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/checkpoint/manifest.h"

namespace kumo {
namespace {

Range Common(Range a, Range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

Range RangeOf(const StateArray& array) {
  return {array.begin, array.begin + static_cast<int64_t>(array.numbers.size())};
}

}  // namespace

ParameterLayout WithoutFactors(const ParameterLayout& layout) {
  std::vector<TensorSpec> tensors = layout.tensors();
  for (TensorSpec& tensor : tensors) tensor.factors = {};
  return tensors.empty() ? layout : ParameterLayout::Make(std::move(tensors)).value();
}

Result<Relocation> Relocation::Make(const checkpoint::Manifest& manifest,
                                    const ParameterLayout& layout) {
  Relocation relocation;
  if (manifest.fingerprint() == layout.fingerprint()) return relocation;
  const auto refuse = [&](const std::string& difference) {
    return FailedPrecondition("checkpoint " + manifest.name() + " is of another network" +
                              difference);
  };
  if (!HasTensors(manifest)) return refuse("");
  KUMO_ASSIGN_OR_RETURN(const ParameterLayout stored, LayoutOf(manifest));
  const std::string difference = WithoutFactors(stored).FirstDifference(WithoutFactors(layout));
  if (!difference.empty()) return refuse(": " + difference);
  for (int i = 0; i < static_cast<int>(std::ssize(layout.tensors())); ++i) {
    const TensorSpec& now = layout.tensors()[i];
    const bool was_trained = stored.tensors()[i].trained();
    relocation.tensors_.push_back({stored.tensor(i), layout.tensor(i).begin, was_trained,
                                   now.factors.frozen(), now.trained() && !was_trained});
  }
  std::ranges::sort(relocation.tensors_, {}, [](const Tensor& t) { return t.stored.begin; });
  return relocation;
}

Range Relocation::Stored(Range wanted) const {
  if (tensors_.empty()) return wanted;
  Range stored;
  bool unfrozen = false;
  for (const Tensor& tensor : tensors_) {
    const Range part = Common(tensor.now(), wanted);
    if (part.begin >= part.end) continue;
    unfrozen = unfrozen || tensor.unfrozen;
    const int64_t begin = tensor.stored.begin + part.begin - tensor.begin;
    if (stored.size() == 0) stored.begin = begin;
    stored.end = begin + part.size();  // the tensors ascend
  }
  return unfrozen ? WithTrained(stored) : stored;
}

Range Relocation::WithTrained(Range stored) const {
  Range nearest = stored;
  for (const Tensor& tensor : tensors_) {
    if (!tensor.was_trained || tensor.stored.size() == 0) continue;
    const Range with = {std::min(stored.begin, tensor.stored.end - 1),
                        std::max(stored.end, tensor.stored.begin + 1)};
    if (nearest.size() == stored.size() || with.size() < nearest.size()) nearest = with;
    if (with.size() == stored.size()) return stored;
  }
  return nearest;
}

void Relocation::Move(Range wanted, ShardSnapshot* snapshot) const {
  if (tensors_.empty()) return;
  std::set<std::pair<int64_t, int64_t>> evaluated;  // ranges of weights that are kept apart
  for (const StateArray& array : snapshot->arrays) {
    if (array.kind == StateKind::kWeights) evaluated.insert({array.begin, RangeOf(array).end});
  }
  std::vector<StateArray> moved;
  for (const StateArray& array : snapshot->arrays) {
    const Range range = RangeOf(array);
    const auto after = [&](const Tensor& tensor) { return tensor.stored.end <= range.begin; };
    for (auto tensor = std::ranges::partition_point(tensors_, after);
         tensor != tensors_.end() && tensor->stored.begin < range.end; ++tensor) {
      StateArray part = array;
      if (tensor->frozen) {
        const bool apart = evaluated.contains({range.begin, range.end});
        if (array.kind != (apart ? StateKind::kWeights : StateKind::kStart)) continue;
        part.kind = StateKind::kStart;
      }
      const int64_t distance = tensor->begin - tensor->stored.begin;
      Range taken = Common(range, tensor->stored);
      taken = Common({taken.begin + distance, taken.end + distance}, wanted);
      if (taken.begin >= taken.end) continue;
      part.begin = taken.begin;
      part.numbers = array.numbers.subspan(taken.begin - distance - range.begin, taken.size());
      moved.push_back(std::move(part));
    }
  }
  AddZeros(wanted, *snapshot, &moved);
  snapshot->arrays = std::move(moved);
}

void Relocation::AddZeros(Range wanted, const ShardSnapshot& snapshot,
                          std::vector<StateArray>* moved) const {
  std::set<std::pair<int, int>> carried;  // partitions and their arrays
  for (const StateArray& array : snapshot.arrays) {
    if (array.kind == StateKind::kPartitionState) carried.insert({array.partition, array.slot});
  }
  if (carried.empty()) return;
  for (const Tensor& tensor : tensors_) {
    const Range part = Common(tensor.now(), wanted);
    if (!tensor.unfrozen || part.begin >= part.end) continue;
    const auto zeros = std::make_shared<std::vector<float>>(part.size());
    for (const auto& [partition, slot] : carried) {
      moved->push_back({StateKind::kPartitionState, partition, slot, part.begin, zeros, *zeros});
    }
  }
}

}  // namespace kumo
