// Job shape: the layout of a job's rounds, chunks and contributions, as its workers' sessions and
// trainers both use it. Immutable; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/round_policy.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"

namespace kumo {

struct JobShape {
  // Requires 1 <= servers <= kMaxServers. The errors of PlanFor.
  static Result<JobShape> Make(const Experiment& experiment, const JobSpec& spec, int servers);

  JobPlan plan;
  RoundPolicy policy;
  ShardMap map;

  // True if a partition goes on with its slice of the next round when its block of `round` has
  // ended.
  bool TrainsAhead(int64_t round, int partition) const {
    return round + 1 < plan.rounds() &&
           plan.AheadSamples(plan.Round(round + 1), partition).size() > 0;
  }
  // True if `version` is evaluated, and with other weights than the next round starts from.
  bool EvaluatesApart(int64_t version) const {
    return plan.EvaluatedEpoch(version) >= 0 && policy.EvaluatesApart(plan.Round(version - 1));
  }
};

}  // namespace kumo
