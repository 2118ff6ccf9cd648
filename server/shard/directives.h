// Directives of chunk 0's versions: the shard tells the coordinator about each version of chunk 0,
// with the sums of the round that made it, and keeps the coordinator's directive for the last round
// that starts from it (JobPlan::RoundsFrom).
//
// Owned by a Shard; without effect on a shard that does not hold chunk 0. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "common/job/job_plan.h"
#include "common/job/metric_sums.h"
#include "proto/wire.pb.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"

namespace kumo {

// Called once for each version of chunk 0 that is made on this server, before any pull of it is
// answered. metrics: sums over the samples of the round that made the version. Returns the
// directive for the last round that starts from it.
using VersionObserver =
    std::function<Directive(int64_t version, const MetricSums& metrics, StepContext* context)>;

class Directives {
 public:
  // plan: borrowed for as long as this lives.
  Directives(VersionObserver observer, const JobPlan* plan)
      : observer_(std::move(observer)), plan_(plan) {}

  // The sums in a partition's contribution to an open round.
  void Note(int64_t round, int partition, MetricSums metrics) {
    metrics_[round][partition] = std::move(metrics);
  }
  // Chunk 0's next version is made.
  void Observe(int64_t version, StepContext* context);
  // A version of chunk 0 has come back from another server, with the former coordinator's state.
  void Adopt(int64_t version, const wire::CoordinatorState& state);

  // The directive of a chunk's version; an empty one for other chunks than 0.
  Directive At(int chunk, int64_t version) const;
  // The newest version and its directive. Requires that there is one.
  std::pair<int64_t, Directive> newest() const { return *directives_.rbegin(); }

 private:
  VersionObserver observer_;
  const JobPlan* plan_;
  std::map<int64_t, Directive>
      directives_;  // of chunk 0's versions that are kept, and the next one
  std::map<int64_t, std::map<int, MetricSums>> metrics_;  // of the open rounds, by partition
};

}  // namespace kumo
