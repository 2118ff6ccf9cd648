// Job plan: mode, samples and epoch of each round of a job, a pure function of the settings.
//
// Servers, workers and the coordinator all work out the same plan from the experiment and the size
// of the training set, so no message says "now the warm-up ends" or "this was the last round".
//
// An epoch visits each training sample once, in the order of a seeded permutation. A round takes
// the next samples of that order: partitions * minibatch of them in gradient mode and in the
// warm-up of block mode, partitions * minibatch * block in block mode proper, and the rest of the
// epoch (or of the warm-up) in its last round. A round's samples are split evenly over the
// partitions, as contiguous slices that differ by at most one sample.
//
// With sync.overlap a partition trains the first minibatches of its next slice before it merges the
// version that the slice's round starts from (RoundPlan::ahead), but never of another epoch's: so
// nothing is on its way between two epochs.
//
// With sync.fragments = F, a block is cut into F rounds of block mode. In each of them the chunks
// of one fragment take part, in turn, and a partition keeps its own weights of the other fragments;
// in an epoch's last round all take part. A contribution to a chunk is then of several rounds:
// those since its fragment took part last (SpanOf).
//
// In gradient mode, sync.overlap is a delay of d rounds: the contributions to a round start from
// the version d rounds before, or from the epoch's first version. So d + 1 rounds of a chunk may be
// open, and a worker computes one while the others are exchanged. The relations between versions
// and rounds that follow are here (BaseOf to OldestKept); without a delay round r starts from
// version r.
//
// In async mode with sync.staleness = s the same relations hold for d = s, but a chunk applies each
// contribution when it arrives: version v has all contributions to the rounds before v, and some to
// the s + 1 rounds from v on. Round r starts from such weights of a version from BaseOf(r) on, as
// new as they come. Only the first version of an epoch, and one that is saved, has no other
// contributions. Without staleness the mode is gradient mode.
//
// Immutable; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "common/settings/choices.h"

namespace kumo {

struct PlanSettings {
  SyncMode mode = SyncMode::kBlock;
  int64_t train_samples = 0;
  int partitions = 1;
  int minibatch = 1;
  int block = 1;               // minibatches of a partition in a round of block mode
  int overlap = 0;             // of them, trained ahead
  int fragments = 1;           // of the weights, in block mode
  bool own_weights = false;    // partitions may go on from weights of their own, in block mode
  int delay = 0;               // rounds by which contributions are late; not in block mode
  int64_t warmup_samples = 0;  // length of the warm-up: full precision and gradient rounds
  int epochs = 1;
  int evaluate_every_epochs = 1;  // 0: only after the last
};

struct RoundPlan {
  int64_t round = 0;
  int epoch = 0;  // counted from 0
  // Whether a partition trains a block of minibatches with its own optimiser, and contributes the
  // way of its weights. Otherwise it contributes the gradient of one minibatch: always in gradient
  // mode, and in block mode's warm-up.
  bool local_steps = false;
  bool full_precision = false;  // in the warm-up: pushes are not quantised
  Range samples;                // positions in the epoch's permutation
  int64_t first_sample = 0;     // samples of the whole job before this round
  bool ends_epoch = false;
  int fragment = -1;  // that takes part; -1: all
  // Whether partitions may go on from where the round before has left them, and not only from the
  // weights that they pull (PlanSettings::own_weights).
  bool goes_on = false;
  int64_t step = 1;  // rounds of this kind (local_steps) so far, this one included
  // Samples at the front of each slice that are trained ahead, as far as a slice has another
  // minibatch behind them.
  int64_t ahead = 0;
};

class JobPlan {
 public:
  JobPlan() = default;
  // Requires settings in the ranges of the option table and without ProblemsOfRounds, which PlanFor
  // (job_identity.h) refuses. InvalidArgument without training samples, and for a job or a round
  // that is too long.
  static Result<JobPlan> Make(const PlanSettings& settings);

  const PlanSettings& settings() const { return settings_; }
  // Rounds of the whole job; the final weights are version rounds().
  int64_t rounds() const { return rounds_; }
  // Samples of the whole job, all epochs together.
  int64_t samples() const { return settings_.train_samples * settings_.epochs; }
  // Samples on which the weights of a version were trained. Requires 0 <= version <= rounds().
  int64_t SamplesAt(int64_t version) const;
  // Requires 0 <= round < rounds().
  RoundPlan Round(int64_t round) const;
  // Partition p's slice of a round: positions in the epoch's permutation; may be empty.
  Range PartitionSamples(const RoundPlan& round, int partition) const;
  // Whether a round changes the numbers of a chunk, so that partitions contribute to it. Statistics
  // are in every round.
  static bool TakesPart(const RoundPlan& round, const Chunk& chunk) {
    if (chunk.frozen()) return false;
    return round.fragment < 0 || !chunk.trained() || chunk.fragment == round.fragment;
  }
  // The rounds that the contributions to a chunk are of, as one: from the first round after the
  // chunk took part last, or the epoch's first, to this one. `step` counts the rounds of this kind
  // in which the chunk has taken part. Requires that the chunk takes part.
  RoundPlan SpanOf(const RoundPlan& round, const Chunk& chunk) const;
  // A partition's samples in those rounds.
  int64_t SpanSamples(const RoundPlan& round, const Chunk& chunk, int partition) const;
  // The oldest version with the same numbers of a chunk as `version`; 0 <= version <= rounds().
  int64_t NumbersSince(int64_t version, const Chunk& chunk) const;
  // Whether a chunk has the same numbers in two versions; false for what is no version of the job.
  bool SameNumbers(int64_t a, int64_t b, const Chunk& chunk) const;
  // The front of a partition's slice (PartitionSamples), which is trained ahead, and the rest,
  // which is never empty unless the slice is. The front is of whole minibatches.
  Range AheadSamples(const RoundPlan& round, int partition) const;
  Range MainSamples(const RoundPlan& round, int partition) const;
  // Samples that a round's metrics are of: those of the partitions' MainSamples.
  int64_t MeasuredSamples(const RoundPlan& round) const;
  // Whether one of `parts` equal parts of an epoch ends in this round, its last sample included.
  // The epoch's last round always ends one.
  bool EndsPart(const RoundPlan& round, int parts) const;
  // Rounds by which contributions are late, except at the front of an epoch.
  int delay() const { return settings_.delay; }
  // Whether contributions are applied when they arrive, and what a round starts from is therefore
  // no version but at least one.
  bool on_arrival() const { return settings_.mode == SyncMode::kAsync && delay() > 0; }
  // The version that contributions to a round start from; of rounds(): that version. Never
  // decreases with the round. Requires 0 <= round <= rounds().
  int64_t BaseOf(int64_t round) const;
  // The rounds that start from a version: one; with a delay, several from an epoch's first version
  // and none from its last ones. Empty for version rounds().
  Range RoundsFrom(int64_t version) const;
  // As seen from a chunk that has reached `version`: the last round for which there may be
  // contributions (rounds() - 1 at the end), the oldest round that another chunk may have open, and
  // the oldest version that such a round starts from.
  int64_t LastOpen(int64_t version) const;
  int64_t OldestOpen(int64_t version) const { return version > 0 ? BaseOf(version - 1) : 0; }
  int64_t OldestBase(int64_t version) const { return BaseOf(OldestOpen(version)); }
  // The oldest version that a chunk keeps, and the oldest that it needs to begin at `version`.
  int64_t OldestKept(int64_t version) const { return on_arrival() ? version : OldestBase(version); }
  int64_t OldestSaved(int64_t version) const { return on_arrival() ? version : BaseOf(version); }
  // Versions that a chunk keeps at most, its newest one included, unless contributions are applied
  // on arrival.
  static constexpr int MostKept(int delay) { return 2 * delay + 2; }
  // The number by which a worker pulls the weights for a round, and the version on whose occasion
  // it is told what is directed with that number.
  int64_t PulledFor(int64_t round) const { return on_arrival() ? round : BaseOf(round); }
  int64_t ToldWith(int64_t pulled) const { return on_arrival() ? BaseOf(pulled) : pulled; }
  // The samples of the largest slice that a partition gets in any round, and of the largest
  // minibatch of one: never more than the data have.
  int64_t LargestSlice() const;
  int64_t LargestMinibatch() const {
    return std::min<int64_t>(settings_.minibatch, LargestSlice());
  }
  // The samples of one step of the round's optimiser, a server's or a partition's; the
  // learning-rate schedule is told of them.
  int64_t SamplesPerStep(const RoundPlan& round) const {
    return round.local_steps ? LargestMinibatch() : round.samples.size();
  }
  // The samples of the smallest part of a minibatch of any round, such as the rest of a slice that
  // is not a multiple of `part`, the samples of most parts.
  int64_t SmallestPart(int part) const;
  // Partition p's slice of `samples` validation samples.
  Range EvaluationSamples(int64_t samples, int partition) const;
  // The epoch (counted from 0) that ended with weights version `version` and is to be evaluated, or
  // -1.
  int EvaluatedEpoch(int64_t version) const;

 private:
  // Rounds of equal length, one after the other, repeated for some epochs.
  struct Stretch {
    int64_t first_round = 0;
    int64_t rounds_per_repeat = 0;
    int64_t repeats = 0;  // epochs
    int first_epoch = 0;
    Range samples;  // of the epoch's permutation, in each repeat
    int64_t samples_per_round = 0;
    bool local_steps = false;
  };
  const Stretch& StretchOf(int64_t round) const;
  void AddStretch(int first_epoch, int64_t repeats, Range samples, bool local_steps);
  // The rounds of the epoch that a round belongs to. Requires a delay, and so epochs of equally
  // many rounds.
  Range EpochOf(int64_t round) const;

  PlanSettings settings_;
  std::vector<Stretch> stretches_;
  int64_t rounds_ = 0;
  int64_t first_block_round_ = 0;
};

}  // namespace kumo
