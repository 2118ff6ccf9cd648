#include "server/shard/directives.h"

#include <memory>

#include "common/job/metric_list.h"

namespace kumo {

void Directives::Observe(int64_t version, StepContext* context) {
  MetricSums sum;
  for (MetricSums& metrics : metrics_) {  // in partition order
    sum.Add(metrics);
    metrics = {};
  }
  said_.erase(said_.begin(), said_.lower_bound(version - 2));
  said_[version] = observer_(version, sum, context);
}

void Directives::Adopt(int64_t version, const wire::CoordinatorState& said) {
  said_[version] = {said.save(), said.stop_at() == version + 1, said.move_at() == version + 1,
                    std::make_shared<wire::CoordinatorState>(said)};
}

Directive Directives::At(int chunk, int64_t version) const {
  const auto found = said_.find(version);
  return chunk > 0 || found == said_.end() ? Directive() : found->second;
}

}  // namespace kumo
