#include "server/shard/directives.h"

#include <memory>

namespace kumo {

void Directives::Observe(int64_t version, Turn* turn) {
  wire::Metrics sum;
  for (wire::Metrics& metrics : metrics_) {
    sum.set_samples(sum.samples() + metrics.samples());
    sum.set_loss_sum(sum.loss_sum() + metrics.loss_sum());
    sum.set_correct(sum.correct() + metrics.correct());
    metrics.Clear();
  }
  said_.erase(said_.begin(), said_.lower_bound(version - 2));
  said_[version] = observer_(version, sum, turn);
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
