#include "server/shard/directives.h"

#include <memory>

namespace kumo {

void Directives::Observe(int64_t version, StepContext* context) {
  MetricSums sum;
  // In partition order, so that the bits do not depend on arrival.
  for (MetricSums& metrics : metrics_) sum.Add(std::exchange(metrics, {}));
  directives_.erase(directives_.begin(), directives_.lower_bound(version - 2));
  directives_[version] = observer_(version, sum, context);
}

void Directives::Adopt(int64_t version, const wire::CoordinatorState& state) {
  directives_[version] = {state.save(), state.stop_at() == version + 1,
                          state.move_at() == version + 1,
                          std::make_shared<wire::CoordinatorState>(state)};
}

Directive Directives::At(int chunk, int64_t version) const {
  const auto found = directives_.find(version);
  return chunk > 0 || found == directives_.end() ? Directive() : found->second;
}

}  // namespace kumo
