// Position of a local step in the learning-rate schedule. A pure function.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/job/job_plan.h"
#include "common/settings/experiment.h"

namespace kumo {

// Samples of the whole job before minibatch 0, 1, ... of a block: all partitions advance together,
// so the position counts the samples of all of them.
inline int64_t StepPosition(const Experiment& experiment, const RoundPlan& round,
                            int64_t minibatch) {
  const auto& sync = experiment.sync;
  return std::min(round.first_sample + minibatch * sync.minibatch * sync.partitions,
                  round.first_sample + round.samples.size());
}

}  // namespace kumo
