// Job shape: the layout of a job's rounds, chunks and contributions, as its workers' sessions and
// trainers both use it. Immutable; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"

namespace kumo {

struct JobShape {
  // Requires 1 <= servers <= kMaxServers. The errors of PlanFor.
  static Result<JobShape> Make(const Experiment& experiment, const JobSpec& spec, int servers);

  JobPlan plan;
  ShardMap map;
  PushCodecs push_codecs;  // of a round's contributions to a chunk
  int carried_arrays = 0;  // arrays that a partition carries for each trained chunk
  // Whether the weights that are evaluated after a round of gradient or block mode are other ones
  // than the next round starts from.
  bool apart_in_gradient_mode = false;
  bool apart_in_block_mode = false;

  bool pulls_differences = false;  // Experiment::PullsDifferences()

  // True if `version` is evaluated, and with other weights than the next round starts from.
  bool EvaluatesApart(int64_t version) const;
};

}  // namespace kumo
