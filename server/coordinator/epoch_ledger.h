// The sums behind the curves: loss and accuracy of rounds, of the rounds between two points, of
// epochs, and of their evaluations.
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
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"

namespace kumo {

class EpochLedger {
 public:
  struct Epoch {
    int epoch = 0;
    wire::Metrics train, validation;
  };

  EpochLedger() = default;
  // restored: of the checkpoint that the job goes on from. elapsed_seconds is not touched here.
  explicit EpochLedger(const checkpoint::Progress& restored) : progress_(restored) {}

  // The ledger of a coordinator that takes over from a former one, which has left `state`.
  explicit EpochLedger(const wire::CoordinatorState& state);
  // Fills in what that constructor reads.
  void Describe(wire::CoordinatorState* state) const;

  // The job starts at `version`: an epoch that ended there is still to be evaluated.
  void Start(const JobPlan& plan, int64_t version);
  // The round that made `version` has closed. Requires samples in it. The sums since the point
  // before, where one of the curves' points is there.
  std::optional<wire::Metrics> AddRound(const JobPlan& plan, int64_t version,
                                        const wire::Metrics& metrics, int points_per_epoch);
  // Whether a partition's evaluation of `version`, which ends an epoch that is evaluated, is still
  // to come.
  bool Waits(const JobPlan& plan, int64_t version, int partition) const;
  // A partition has evaluated its slice with `version`, which ends an epoch that is evaluated; a
  // second report of a partition changes nothing. The epoch when that was the last partition.
  std::optional<Epoch> AddEvaluation(const JobPlan& plan, int64_t version, int partition,
                                     const wire::Metrics& metrics);

  const checkpoint::Progress& progress() const { return progress_; }
  // The validation sums of the last complete epoch since the start; no samples before the first.
  const wire::Metrics& last_validation() const { return last_validation_; }
  // Partitions that have not evaluated the first epoch that waits for its evaluation.
  std::vector<int> Unevaluated(int partitions) const;
  // No epoch that has ended waits for its evaluation.
  bool complete() const { return ended_.empty(); }

 private:
  void AddToEpoch(const JobPlan& plan, const RoundPlan& round, const wire::Metrics& metrics);

  checkpoint::Progress progress_;
  std::map<int, wire::Metrics> ended_;  // epoch -> training sums, until it is evaluated
  std::map<int, std::map<int, wire::Metrics>> evaluations_;  // epoch -> partition -> sums
  wire::Metrics last_validation_;
};

}  // namespace kumo
