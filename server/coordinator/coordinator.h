// The coordinator: a role of server 0, as a state machine. It knows who takes part, leases
// partitions to workers, says after which rounds a checkpoint is taken, commits its manifest, and
// decides when the job is done or has failed.
//
// It is not on the way of a round: shards close rounds by themselves. What it wants of a round (a
// checkpoint, a stop) travels with the pull of chunk 0 that starts it and with the pushes that end
// it, so every process acts on the same round. What it wants of a worker (leases) is repeated whole
// in each heartbeat's reply, so a lost message changes nothing.
//
// Its parts have the state, and know how: who takes part (Membership), who computes what (Leasing),
// where the job goes on when something was lost (Recovery), for whom it waits (Waiting), what is
// saved (Saving, Manifests), when and how it ends (Ending, Farewell) and what is told of it
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
#include "server/role.h"

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
  Result<bool> OnHello(const PeerName& from, const wire::Hello& hello, Turn* turn) override;
  Status OnMessage(const PeerName& from, const wire::Header& header, Turn* turn) override;
  Directive OnVersion(int64_t version, const checkpoint::SampleSums& metrics, Turn* turn) override;
  void TakeOver(int64_t version, const Directive& said, Turn* turn) override;
  void OnDiskAnswer(const DiskAnswer& answer, Turn* turn) override {
    std::visit([&](const auto& one) { On(one, turn); }, answer);
  }
  // Saves at the end of the next round, then stops.
  void RequestStop(const Standing&, Turn*) override { job_.ending.RequestStop(); }
  TimeUs Tick(const Standing& standing, Turn* turn) override;
  bool Knows(const PeerName& p, TimeUs, TimeUs) const override { return job_.members().Knows(p); }
  std::string WaitsForProcesses(TimeUs now) const override {
    return kumo::WaitsForProcesses(job_, now);
  }
  wire::JobStatus Describe(TimeUs now) const override { return StatusOf(job_, now); }

 private:
  // What parts tell: of a member, and of what is to be done.
  void Follow(const std::optional<News>& news, Turn* turn);
  void SeeTo(const Consequence& what, Turn* turn);
  void Recover(const News& news, Turn* turn);
  void GoBack(const std::string& why, Turn* turn);
  Status OnEvaluated(const PeerName& from, const wire::Header& header, Turn* turn);
  void OnSaved(const PeerName& from, const wire::Header& header, Turn* turn);
  void On(const CheckpointCommitted& committed, Turn* turn);
  void On(const CheckpointChosen& chosen, Turn* turn);
  void On(const GenerationReserved&, Turn*) { job_.recovery.OnReserved(); }
  void On(const EvaluationKept&, Turn* turn) {
    job_.saving.OnKept();
    FinishIfDone(turn);
  }
  void TickWaiting(Turn* turn);
  void TickTraining(Turn* turn);
  void EndWith(const std::string& why, Turn* turn);
  void FinishIfDone(Turn* turn);
  void Fail(const Status& status, Turn* turn);

  JobState job_;
  StatusReplies status_replies_;
  TimeUs ticked_at_;
};

}  // namespace kumo
