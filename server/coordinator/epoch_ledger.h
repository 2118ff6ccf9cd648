// The sums behind the curves: those of the job's metrics over rounds, over the rounds between two
// points, over epochs, and over the validation set.
//
// Rounds are counted as they close and evaluations as partitions report them, in any order; an
// epoch is complete when all partitions have evaluated the version that it ended with. A
// checkpoint keeps progress(), so that a resumed job's points and epochs have the sums of an
// uninterrupted one.
//
// Owned by TrainingProgress; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/job/job_plan.h"
#include "common/job/metric_list.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"

namespace kumo {

class EpochLedger {
 public:
  struct Epoch {
    int epoch = 0;
    MetricSums train, validation;
  };

  EpochLedger() = default;
  // restored: the checkpoint that the job goes on from. Progress.elapsed_seconds is not read
  // here.
  explicit EpochLedger(const checkpoint::Manifest& restored);

  // The ledger of a coordinator that takes over from a former one, which has left `state` with sums
  // of these metrics.
  EpochLedger(const wire::CoordinatorState& state, const MetricList& metrics);
  // Fills in what that constructor reads.
  void Describe(wire::CoordinatorState* state) const;

  // The job starts at `version`, and has these metrics: an epoch that ended there is still to be
  // evaluated. Where the checkpoint's metrics are others, what it does not know of a metric is not
  // a number until the epoch, or the stretch up to a point, is over.
  void Start(const JobPlan& plan, int64_t version, const MetricList& metrics);
  // The round that made `version` has closed. Requires samples in it. The sums since the point
  // before, where one of the curves' points is there.
  std::optional<MetricSums> AddRound(const JobPlan& plan, int64_t version,
                                     const MetricSums& metrics, int points_per_epoch);
  // Whether a partition's evaluation of `version`, which ends an epoch that is evaluated, is still
  // to come.
  bool Waits(const JobPlan& plan, int64_t version, int partition) const;
  // A partition has evaluated its slice with `version`, which ends an epoch that is evaluated; a
  // second report of a partition changes nothing. The epoch when that was the last partition.
  std::optional<Epoch> AddEvaluation(const JobPlan& plan, int64_t version, int partition,
                                     const MetricSums& metrics);

  // As a checkpoint has it, but for Progress.elapsed_seconds.
  checkpoint::Progress progress() const;
  // Samples that the newest version was trained on, all epochs together.
  int64_t samples() const { return samples_; }
  // Of the last round; empty before there was one.
  const MetricSums& last_round() const { return last_; }
  // The validation sums of the last complete epoch since the start; no samples before the first.
  const MetricSums& last_validation() const { return last_validation_; }
  // Partitions that have not evaluated the first epoch that waits for its evaluation.
  std::vector<int> Unevaluated(int partitions) const;
  // No epoch that has ended waits for its evaluation.
  bool complete() const { return ended_.empty(); }

 private:
  void StartFrom(const checkpoint::Progress& progress);
  void AddToEpoch(const JobPlan& plan, const RoundPlan& round, const MetricSums& metrics);

  MetricList metrics_;  // that all of these are sums of
  int64_t samples_ = 0;
  MetricSums last_;                  // of the last round
  MetricSums epoch_;                 // of the epoch that is trained
  MetricSums ended_epoch_;           // of the last epoch that ended
  MetricSums point_;                 // of the rounds since the last point of the curves
  std::map<int, MetricSums> ended_;  // epoch -> training sums, until it is evaluated
  std::map<int, std::map<int, MetricSums>> evaluations_;  // epoch -> partition -> sums
  MetricSums last_validation_;
};

}  // namespace kumo
