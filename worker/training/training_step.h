// Of a training step: what it is done with, and which of its gradients are final before its end.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <vector>

#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "common/settings/experiment.h"
#include "models/backend/step_recorder.h"
#include "worker/session/actions.h"
#include "worker/training/opened_job.h"

namespace kumo {

// A minibatch of a block.
struct BlockStep {
  int minibatch = 0;  // counted from 0
  int samples = 0;
};
// carries_state: the local optimiser's state comes from the block before.
StepParameters ParametersOf(const Experiment& experiment, const OpenedJob& job,
                            const TrainAction& train, const BlockStep& minibatch,
                            bool carries_state);

// By stage of the net's backward pass, ranges of tensors in `stages`: the chunks whose gradients
// are final with it. Empty where gradients may change until the end of the step.
std::vector<std::vector<int>> ReadyChunks(const Experiment& experiment,
                                          std::span<const Range> stages,
                                          const ParameterLayout& layout, const ShardMap& map);

}  // namespace kumo
