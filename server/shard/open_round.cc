#include "server/shard/open_round.h"

namespace kumo {
namespace {

constexpr int kEagerContributions = 4;

}  // namespace

void OpenRound::Add(int partition, CodedContribution contribution) {
  arrived_[partition] = std::move(contribution);
}

// How many are worth a pass.
int OpenRound::Ready() const {
  int ready = 0;
  while (added_ + ready < partitions() && arrived_[added_ + ready]) ++ready;
  const bool closes = added_ + ready == partitions();
  return closes || ready >= kEagerContributions ? ready : 0;
}

void OpenRound::MoveInto(ChunkWork* work) {
  const int ready = Ready();
  const bool closes = added_ + ready == partitions();
  for (int i = 0; i < ready; ++i) {
    auto& arrived = arrived_[added_ + i];
    if (arrived->samples > 0) work->contributions.push_back(std::move(*arrived));
    arrived.reset();
  }
  work->sum_holds_numbers = added_ > 0;
  if (!closes && !sum_) sum_ = MakeArray(work->numbers);
  work->sum = !closes || added_ > 0 ? sum_ : nullptr;
  added_ += ready;
}

std::vector<int> OpenRound::Missing() const {
  std::vector<int> missing;
  for (int p = added_; p < partitions(); ++p) {
    if (!arrived_[p]) missing.push_back(p);
  }
  return missing;
}

OpenRound::Keepers OpenRound::Close() {
  added_ = 0;
  save_ = false;
  return std::exchange(keepers_, {});
}

}  // namespace kumo
