// The coordinator: a role of server 0, as a state machine. It knows who takes part, leases
// partitions to workers, says after which rounds a checkpoint is taken, commits its manifest, and
// decides when the job is done or has failed.
//
// It is not on the way of a round: shards close rounds by themselves. What it wants of a round (a
// checkpoint, a stop) travels with the pull of chunk 0 that starts it and with the pushes that end
// it, so every process acts on the same round. What it wants of a worker (leases) is repeated whole
// in each heartbeat's reply, so a lost message changes nothing.
//
// Its parts have the state, and know how: who takes part (MembershipTracker), who computes what
// (Leasing), where the job goes on when something was lost (Recovery), for whom it waits (Waiting),
// what is saved (Saving, Manifests), when and how it ends (Ending, Shutdown) and what is told of it
// (TrainingProgress). The coordinator has the phase, hands on what a call is about, and sees to
// what follows from it for the other parts. A process that is merely silent, and comes back as it
// was, costs nothing but the wait.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <optional>
#include <string>

#include "server/coordinator/announcements.h"
#include "server/coordinator/coordinator_settings.h"
#include "server/coordinator/job_state.h"
#include "server/coordinator/status_replies.h"
#include "server/protocol/role.h"

namespace kumo {

// Its public methods are those of Role.
class Coordinator : public Role {
 public:
  // restored: the manifest of the checkpoint that the job goes on from, if any.
  Coordinator(CoordinatorSettings settings, std::optional<checkpoint::Manifest> restored,
              TimeUs now);

  const Generation& generation() const override { return job_.recovery.generation(); }
  const SaveOrder& save_order() const override { return job_.saving.checkpoints().order(); }
  const LeaseTable& leases() const override { return job_.leasing.table(); }
  void OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) override;
  Result<bool> OnHello(const PeerName& from, const wire::Hello& hello,
                       StepContext* context) override;
  Status OnMessage(const PeerName& from, const wire::Header& header, StepContext* context) override;
  Directive OnVersion(int64_t version, const MetricSums& metrics, StepContext* context) override;
  void TakeOver(int64_t version, const Directive& said, StepContext* context) override;
  void OnDiskAnswer(const DiskAnswer& answer, StepContext* context) override {
    std::visit([&](const auto& one) { On(one, context); }, answer);
  }
  // Saves at the end of the next round, then stops.
  void RequestStop(const ReplicaStatus&, StepContext*) override { job_.ending.RequestStop(); }
  TimeUs Tick(const ReplicaStatus& standing, StepContext* context) override;
  bool Knows(const PeerName& p, TimeUs, TimeUs) const override { return job_.members().Knows(p); }
  std::string WaitsForProcesses(TimeUs now) const override {
    return kumo::WaitsForProcesses(job_, now);
  }
  wire::JobStatus Describe(TimeUs now) const override { return StatusOf(job_, now); }

 private:
  // What parts tell: of a member, and of what is to be done.
  void Follow(const std::optional<MemberEvent>& news, StepContext* context);
  void SeeTo(const Effects& what, StepContext* context);
  void Recover(const MemberEvent& news, StepContext* context);
  void GoBack(const std::string& why, StepContext* context);
  Status OnEvaluated(const PeerName& from, const wire::Header& header, StepContext* context);
  void OnSaved(const PeerName& from, const wire::Header& header, StepContext* context);
  void On(const CheckpointCommitted& committed, StepContext* context);
  void On(const CheckpointChosen& chosen, StepContext* context);
  void On(const GenerationReserved&, StepContext*) { job_.recovery.OnReserved(); }
  void On(const EvaluationKept&, StepContext* context) {
    job_.saving.OnKept();
    FinishIfDone(context);
  }
  void TickWaiting(StepContext* context);
  void TickTraining(StepContext* context);
  void EndWith(const std::string& why, StepContext* context);
  void FinishIfDone(StepContext* context);
  void Fail(const Status& status, StepContext* context);

  JobState job_;
  StatusReplies status_replies_;
  TimeUs ticked_at_;
};

}  // namespace kumo
