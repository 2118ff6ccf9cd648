// How a job's rounds, chunks and contributions are laid out: what a worker's session and its
// trainer both go by. Immutable; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"

namespace kumo {

struct JobShape {
  // Requires 1 <= servers <= ShardMap::kMaxServers. The errors of PlanFor and PushCodecs::Make.
  static Result<JobShape> Make(const Experiment& experiment, const JobSpec& spec, int servers);

  JobPlan plan;
  ShardMap map;
  PushCodecs push_codecs;            // of a round's contributions to a chunk
  int carried_arrays = 0;            // that a partition carries for each trained chunk
  bool keeps_weights_apart = false;  // the block rule, evaluated ones from what blocks start from

  // True where version `version` is evaluated and the rule keeps the evaluated weights apart from
  // what blocks start from.
  bool EvaluatesApart(int64_t version) const;
};

}  // namespace kumo
