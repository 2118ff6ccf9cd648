#include "worker/training/training_step.h"

#include <algorithm>
#include <cstdint>

namespace kumo {

StepParameters ParametersOf(const Experiment& experiment, const OpenedJob& job,
                            const TrainAction& train, const BlockStep& minibatch,
                            bool carries_state) {
  const auto& sync = experiment.sync;
  const RoundPlan& round = train.round;
  StepParameters step;
  step.streams = {experiment.job.seed, static_cast<uint64_t>(train.partition),
                  static_cast<uint64_t>(round.round), static_cast<uint64_t>(minibatch.minibatch)};
  step.optimiser = job.optimiser.get();
  // All partitions advance together: the position counts what they have seen so far.
  const int64_t position =
      std::min(round.first_sample + int64_t{minibatch.minibatch} * sync.minibatch * sync.partitions,
               round.first_sample + round.samples.size());
  step.undecayed.learning_rate = job.schedule->RateAt(position, minibatch.samples);
  step.undecayed.momentum = job.schedule->MomentumAt(position, minibatch.samples);
  step.undecayed.step = minibatch.minibatch + 1;
  if (carries_state) step.undecayed.step += (round.step - 1) * sync.block;
  step.decayed = step.undecayed;
  step.decayed.weight_decay = experiment.optimiser.weight_decay;
  step.clip_norm = experiment.optimiser.clip_norm;
  return step;
}

// A chunk is final when the first of its tensors is, whose gradients are the last that are made.
// What belongs to the last stage is final at the step's end, with everything else; so is chunk 0,
// whose message says how the step went. A factor that is worked out of all gradients, for clipping
// or for fp16's losses, leaves none final before.
std::vector<std::vector<int>> ReadyChunks(const Experiment& experiment,
                                          std::span<const Range> stages,
                                          const ParameterLayout& layout, const ShardMap& map) {
  if (experiment.optimiser.clip_norm > 0 || experiment.network.precision == "fp16") return {};
  std::vector<std::vector<int>> chunks(stages.size());
  for (const Chunk& chunk : map.chunks()) {
    if (chunk.index == 0 || chunk.segment == Segment::kStatistics) continue;
    const int first = layout.TensorAt(chunk.range.begin);
    for (size_t stage = 0; stage + 1 < stages.size(); ++stage) {
      if (stages[stage].begin <= first && first < stages[stage].end) {
        chunks[stage].push_back(chunk.index);
      }
    }
  }
  return chunks;
}

}  // namespace kumo
