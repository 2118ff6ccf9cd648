// Progress of a job: rounds and epochs done, training rate, and the reported figures.
//
// TrainingProgress is the whole. Its parts: EpochLedger has the sums behind the curves,
// HeldEvaluations the evaluations that a later coordinator would not know of yet, TrainingRate the
// rate from which the remaining time follows.
//
// Invariants:
// - The sums of a resumed job's points and epochs are those of an uninterrupted one: a checkpoint,
//   and the state for a later coordinator, contain all sums that are not reported yet.
// - Sums of partitions are added in partition order, so figures do not depend on arrival.
// - An epoch is reported once, when all partitions have evaluated the version that it ended with.
//   Evaluations come in any order, also after later rounds.
//
// State machines without I/O, owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/metric_list.h"
#include "common/optimiser/schedule.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
#include "server/protocol/actions.h"
#include "server/protocol/lease_table.h"

namespace kumo {

// Training rate: samples per second, from the ends of rounds.
//
// Rounds of the warm-up are one kind, and rounds after it another; rounds of one kind take the same
// time per sample. A rate is of one kind only: it is forgotten when another kind begins. Rounds are
// weighted by their age, with a time constant of a minute; a round that is late lowers the rate
// while it lasts.
//
// Owned by TrainingProgress; one thread.
class TrainingRate {
 public:
  // Whether two rounds are of one kind.
  static bool AreAlike(const RoundPlan& a, const RoundPlan& b);

  void OnClosed(const RoundPlan& round, TimeUs now);
  // The job goes on from another version, or after a pause.
  void Forget() { *this = TrainingRate(); }

  // nullopt before a round has closed whose beginning was seen.
  std::optional<double> SamplesPerSecond(TimeUs now) const;
  // The rate of rounds like `round`; nullopt if the last round was of another kind.
  std::optional<double> SamplesPerSecondOf(const RoundPlan& round, TimeUs now) const;

 private:
  std::optional<RoundPlan> last_;  // that has closed
  TimeUs last_at_ = 0;
  // Weighted sums over rounds.
  double samples_ = 0;
  double seconds_ = 0;
};

// Held evaluations: evaluations that their workers keep, if versions are kept twice, until a later
// coordinator would know of them too.
//
// An evaluation that came during version v is part of the coordinator's state that travels with
// version v + 1, and that state is on two servers when version v + 2 is made. The version that was
// evaluated does not matter: an evaluation that is sent again to a new server 0 may come after
// later contributions.
//
// Owned by TrainingProgress; one thread.
class HeldEvaluations {
 public:
  // A partition's evaluation of a version came when chunk 0 was at version `now`.
  void Hold(int64_t version, int partition, int64_t now);
  // Acknowledges an evaluation; its sender keeps it if it is held.
  void Answer(const PeerName& from, const wire::Header& header, StepContext* context);
  // Chunk 0 has reached a version: releases the senders of evaluations that are safe.
  void Release(int64_t version, StepContext* context);
  // The job goes back.
  void Forget() { held_.clear(); }

 private:
  struct Held {
    int64_t came_at = 0;                      // chunk 0's version then
    std::map<PeerName, SendAction> released;  // the last acknowledgement of each sender
  };
  std::map<std::pair<int64_t, int>, Held> held_;  // by version, partition
};

// Epoch ledger: sums of the job's metrics over the last round, over the rounds since the last point
// of the curves, over epochs, and over the validation set.
//
// Owned by TrainingProgress; one thread.
class EpochLedger {
 public:
  struct Epoch {
    int epoch = 0;
    MetricSums train, validation;
    std::vector<MetricFigure> classes;  // of the validation (MetricList::FiguresOfClasses)
    std::string trouble;                // TroubleOf (health.h)
    std::string early_stop;             // why the job ends early with stops_at(); "": it does not
  };
  // Early stopping (job.patience).
  struct StopRule {
    int patience = 0;  // epochs; 0: none
    std::string metric{};
    double min_improvement = 0;
  };
  // Classes of the network, with their names if the data have some.
  struct Classes {
    int count = 0;
    std::vector<std::string> names{};
  };
  EpochLedger() = default;
  // The ledger of a job that goes on from a checkpoint. Progress.elapsed_seconds is not read.
  explicit EpochLedger(const checkpoint::Manifest& restored);

  // The ledger of a coordinator that takes over from a former one, which has left `state` with sums
  // of these metrics.
  EpochLedger(const wire::CoordinatorState& state, const MetricList& metrics);
  // Fills in the fields that the constructor above reads.
  void Describe(wire::CoordinatorState* state) const;

  // The job starts at `version` with these metrics. If an epoch ended there, it is still to be
  // evaluated. If the checkpoint has other metrics, sums of new ones are NaN until the epoch, or
  // the interval between two points, is over.
  void Start(const JobPlan& plan, int64_t version, const MetricList& metrics);
  // The job goes on with this rule. Drops an early end that the rule would not have chosen: the
  // checkpoint's job may have had less patience.
  void Reconsider(const JobPlan& plan, const StopRule& rule);
  // The round that made `version` has closed; it had samples. Returns the sums since the previous
  // point if a point of the curves is at this version.
  std::optional<MetricSums> AddRound(const JobPlan& plan, int64_t version,
                                     const MetricSums& metrics, int points_per_epoch);
  // Whether a partition's evaluation of `version` is still to come. The version ends an epoch that
  // is evaluated.
  bool Waits(const JobPlan& plan, int64_t version, int partition) const;
  // A partition has evaluated its slice with `version`, which ends an epoch that is evaluated. A
  // second report of the partition changes nothing. Returns the epoch if that was the last
  // partition.
  std::optional<Epoch> AddEvaluation(const JobPlan& plan, int64_t version, int partition,
                                     const MetricSums& metrics, const StopRule& rule,
                                     const Classes& classes);
  // The version with which the job ends early; 0: none.
  int64_t stops_at() const { return judged_.stops_at(); }

  // The fields for a checkpoint, except elapsed_seconds.
  checkpoint::Progress progress() const;
  // Samples that the newest version was trained on, all epochs together.
  int64_t samples() const { return samples_; }
  // Sums of the last round; empty before there was one.
  const MetricSums& last_round() const { return last_; }
  // Validation sums of the last complete epoch since the start; empty before the first.
  const MetricSums& last_validation() const { return last_validation_; }
  // Partitions that have not evaluated the first epoch that waits for its evaluation.
  std::vector<int> Unevaluated(int partitions) const;
  // No epoch that has ended waits for its evaluation.
  bool complete() const { return ended_.empty(); }

 private:
  // Of an epoch, as far as they have come.
  struct Evaluations {
    std::map<int, MetricSums> parts;  // by partition, without detections
    DetectionCounts detections;       // of all of them
  };
  void StartFrom(const checkpoint::Progress& progress);
  void AddToEpoch(const JobPlan& plan, const RoundPlan& round, const MetricSums& metrics);
  std::string JudgeEarlyStop(const JobPlan& plan, int64_t version, int epoch, const StopRule& rule);

  MetricList metrics_;           // of all sums here
  checkpoint::Progress judged_;  // first_loss, lowest_loss, best_*, stops_at
  int64_t samples_ = 0;
  MetricSums last_;                         // of the last round
  MetricSums epoch_;                        // of the epoch that is trained
  MetricSums ended_epoch_;                  // of the last epoch that ended
  MetricSums point_;                        // of the rounds since the last point of the curves
  std::map<int, MetricSums> ended_;         // epoch -> training sums, until it is evaluated
  std::map<int, Evaluations> evaluations_;  // by epoch
  MetricSums last_validation_;
};

// Training progress. Owned by the Coordinator; one thread.
class TrainingProgress {
 public:
  struct Settings {
    ScheduleSettings schedule;
    int epochs = 1;
    int points_per_epoch = 1;  // of the curves
    bool keeps_versions_twice = false;
    EpochLedger::StopRule stop_rule{};
  };
  // Result of an evaluation that a worker sent.
  struct Evaluated {
    bool is_new = false;                      // no worker has sent it before
    std::optional<EpochLedger::Epoch> epoch;  // that is complete with it
  };

  // restored: of the checkpoint that the job goes on from, if any.
  TrainingProgress(Settings settings, const std::optional<checkpoint::Manifest>& restored,
                   TimeUs now);

  // The job's spec has become known; the job starts at a version.
  void OnSpec(const JobPlan& plan, const JobSpec& spec, int64_t start_version);
  // The round that made `version` has closed; it had samples. Reports the round, and the point of
  // the curves if there is one.
  void OnRound(const JobPlan& plan, int64_t version, const MetricSums& metrics,
               StepContext* context);
  // A partition's evaluation, while chunk 0 is at `newest`. Unavailable if it would count but is
  // not leased to its sender. InvalidArgument if no evaluation of this version or partition is
  // expected, or if its samples are not the partition's.
  Result<Evaluated> OnEvaluated(const PeerName& from, const wire::Header& header,
                                const LeaseTable& leases, const std::optional<JobPlan>& plan,
                                int64_t newest, StepContext* context);
  // Chunk 0 has reached a version: releases evaluations that are safe.
  void ReleaseEvaluations(int64_t version, StepContext* context) {
    held_.Release(version, context);
  }

  // The job goes on after a pause.
  void Pause() { rate_.Forget(); }
  // The job goes back; to which version is not known yet.
  void GoBack();
  // The job goes on from a checkpoint, or from its beginning. plan: if it is known.
  void StartFrom(const std::optional<checkpoint::Manifest>& restored,
                 const std::optional<JobPlan>& plan);
  // The job goes on at a version, from the state that a former coordinator has left.
  void TakeOver(int64_t version, const wire::CoordinatorState& state, StepContext* context);

  // Of the job; none while they are not known.
  const MetricList& metrics() const { return metrics_; }
  // No epoch that has ended waits for its evaluation.
  bool complete() const { return ledger_.complete(); }
  // Partitions that have not evaluated the first epoch that waits for its evaluation.
  std::vector<int> Unevaluated(int partitions) const { return ledger_.Unevaluated(partitions); }
  // The version with which the job ends early; 0: none.
  int64_t stops_at() const { return ledger_.stops_at(); }
  // For a checkpoint.
  checkpoint::Progress Snapshot(TimeUs now) const;
  // For a later coordinator; without the fields of other parts.
  wire::CoordinatorState State(TimeUs now) const;
  // round_ms: TypicalRound (load_balancer.h).
  void Describe(TimeUs now, int64_t version, const std::optional<JobPlan>& plan, double round_ms,
                wire::JobStatus* status) const;

 private:
  // Seconds of the job, earlier runs included.
  double ElapsedSeconds(TimeUs now) const { return elapsed_before_ + ToSeconds(now - started_); }
  void DescribePlan(TimeUs now, int64_t version, const JobPlan& plan, double round_ms,
                    wire::JobStatus* status) const;
  std::optional<double> LearningRateAt(const JobPlan& plan, const RoundPlan& round) const;
  std::optional<double> SecondsLeft(TimeUs now, int64_t version, const JobPlan& plan,
                                    double round_ms) const;

  Settings settings_;
  int64_t validation_samples_ = 0;
  EpochLedger::Classes classes_;
  std::string trouble_;  // of the last evaluated epoch
  MetricList metrics_;
  TimeUs started_;
  double elapsed_before_ = 0;  // seconds, of earlier runs
  std::optional<Schedule> schedule_;
  EpochLedger ledger_;
  TrainingRate rate_;
  HeldEvaluations held_;
};

}  // namespace kumo
