#include "server/shard/directives.h"

#include <algorithm>
#include <memory>

namespace kumo {

void Directives::Observe(int64_t version, StepContext* context) {
  MetricSums sum;
  // In partition order, so that the bits do not depend on arrival.
  for (const auto& [partition, metrics] : metrics_[version - 1]) sum.Add(metrics);
  metrics_.erase(metrics_.begin(), metrics_.lower_bound(version));
  directives_.erase(directives_.begin(),
                    directives_.lower_bound(plan_->OldestBase(std::max<int64_t>(version - 1, 0))));
  directives_[version] = observer_(version, sum, context);
}

void Directives::Adopt(int64_t version, const wire::CoordinatorState& state) {
  for (int64_t kept = plan_->OldestBase(version); kept <= version; ++kept) {
    const Range rounds = plan_->RoundsFrom(kept);
    if (rounds.size() == 0) continue;
    directives_[kept] = {std::ranges::count(state.save_at(), rounds.end) > 0,
                         state.stop_at() == rounds.end, state.move_at() == rounds.end};
  }
  directives_[version].state = std::make_shared<wire::CoordinatorState>(state);
}

Directive Directives::At(int chunk, int64_t version) const {
  const auto found = directives_.find(version);
  return chunk > 0 || found == directives_.end() ? Directive() : found->second;
}

}  // namespace kumo
