// How far a job is, and what is told of that: the points of its curves, the evaluations of its
// epochs, and how long it still takes.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/metric_list.h"
#include "common/optimiser/schedule.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"
#include "server/coordinator/coordinator_settings.h"
#include "server/coordinator/epoch_ledger.h"
#include "server/coordinator/held_evaluations.h"
#include "server/coordinator/training_rate.h"
#include "server/protocol/actions.h"
#include "server/protocol/lease_table.h"

namespace kumo {

class TrainingProgress {
 public:
  // What came of an evaluation that a worker sent.
  struct Evaluated {
    bool is_new = false;                      // nobody has sent it before
    std::optional<EpochLedger::Epoch> epoch;  // that is complete with it
  };

  // restored: of the checkpoint that the job goes on from, if any.
  TrainingProgress(const CoordinatorSettings& settings,
                   const std::optional<checkpoint::Manifest>& restored, TimeUs now);

  // The job's spec has become known, and it starts at a version.
  void OnSpec(const JobPlan& plan, const JobSpec& spec, int64_t start_version);
  // The round that made `version` has closed: what it adds to the curves. Requires samples in it.
  void OnRound(const JobPlan& plan, int64_t version, const MetricSums& metrics,
               StepContext* context);
  // A partition's evaluation, while chunk 0 is at `newest`. Unavailable where it would count and is
  // not leased to its sender. InvalidArgument where nobody asked for it, or
  // where it is not of the partition's samples.
  Result<Evaluated> OnEvaluated(const PeerName& from, const wire::Header& header,
                                const LeaseTable& leases, const std::optional<JobPlan>& plan,
                                int64_t newest, StepContext* context);
  // Chunk 0 has reached a version: evaluations that were held need not be any more.
  void ReleaseEvaluations(int64_t version, StepContext* context) {
    held_.Release(version, context);
  }

  // The job goes on after a pause.
  void Pause() { rate_.Forget(); }
  // It goes back; where to is not known yet.
  void GoBack();
  // It goes on from a checkpoint, or from its beginning. plan: where it is known.
  void StartFrom(const std::optional<checkpoint::Manifest>& restored,
                 const std::optional<JobPlan>& plan);
  // It goes on at a version, from what a former coordinator has left.
  void TakeOver(int64_t version, const wire::CoordinatorState& state, StepContext* context);

  // No epoch that has ended waits for its evaluation.
  bool complete() const { return ledger_.complete(); }
  // Partitions that have not evaluated the first epoch that waits for its evaluation.
  std::vector<int> Unevaluated(int partitions) const { return ledger_.Unevaluated(partitions); }
  // For a checkpoint, and for a coordinator that is started again.
  checkpoint::Progress Snapshot(TimeUs now) const;
  wire::CoordinatorState State(TimeUs now) const;
  // round_ms: how long a round should take, as LeaseTable::TypicalRound.
  void Describe(TimeUs now, int64_t version, const std::optional<JobPlan>& plan, double round_ms,
                wire::JobStatus* status) const;

 private:
  // Of the job, earlier runs included.
  double ElapsedSeconds(TimeUs now) const { return elapsed_before_ + ToSeconds(now - started_); }
  void DescribePlan(TimeUs now, int64_t version, const JobPlan& plan, double round_ms,
                    wire::JobStatus* status) const;
  std::optional<double> LearningRateAt(const JobPlan& plan, const RoundPlan& round) const;
  std::optional<double> SecondsLeft(TimeUs now, int64_t version, const JobPlan& plan,
                                    double round_ms) const;

  ScheduleSettings schedule_settings_;
  int epochs_;
  int points_per_epoch_;
  int64_t validation_samples_ = 0;
  MetricList metrics_;
  bool keeps_versions_twice_;
  TimeUs started_;
  double elapsed_before_ = 0;  // seconds, of earlier runs
  std::optional<Schedule> schedule_;
  EpochLedger ledger_;
  TrainingRate rate_;
  HeldEvaluations held_;
};

}  // namespace kumo
