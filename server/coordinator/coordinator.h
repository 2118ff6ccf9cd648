// Coordinator: the role of server 0, as a state machine. It knows the members, leases partitions to
// workers, decides after which rounds a checkpoint is taken, commits the manifests, and decides
// when the job is done or has failed.
//
// It is not on the critical path of a round: shards close rounds by themselves. Its decisions about
// a round (save, stop, move leases) travel with the pull of chunk 0 that starts the round and with
// the pushes that end it, so every process acts on them in the same round. Its orders to a process
// (leases, the job's end) are repeated complete in each heartbeat's reply, so a lost message
// changes nothing.
//
// The parts of JobState have the state and the policies. The Coordinator has the phase. It hands
// each call to the part that it concerns; the part returns what follows, as a MemberEvent or as
// Effects; and the Coordinator applies that to the other parts. A part that needs another one gets
// it as an argument.
//
// Scenarios:
// - A process is silent for a while and comes back unchanged: the job waits, and nothing is lost.
// - A worker is lost: MembershipTracker reports it, Leasing leases its partitions to the others.
// - A server was started again: Recovery raises the generation. Either the server fetches its shard
//   from the next server and the job goes on (GoOn), or all servers load the last checkpoint
//   (GoBack).
// - Server 0 was started again while the other servers went on: TakeOver, with the state that was
//   kept with chunk 0; LeaseRecovery collects the workers' leases.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <optional>
#include <string>

#include "server/coordinator/announcements.h"
#include "server/coordinator/job_state.h"
#include "server/protocol/role.h"

namespace kumo {

// Its public methods are Role's.
class Coordinator : public Role {
 public:
  // restored: the manifest of the checkpoint that the job goes on from, if any.
  Coordinator(CoordinatorStart start, std::optional<checkpoint::Manifest> restored, TimeUs now);

  const Generation& generation() const override { return job_.recovery.generation(); }
  const SaveOrder& save_order() const override { return job_.saving.checkpoints().order(); }
  const LeaseTable& leases() const override { return job_.leasing.table(); }
  void OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) override;
  Result<bool> OnHello(const PeerName& from, const wire::Hello& hello,
                       StepContext* context) override;
  Status OnMessage(const PeerName& from, const wire::Header& header, StepContext* context) override;
  void OnHeard(const PeerName& from, const wire::Header& header, TimeUs now) override {
    job_.membership.OnHeard(from, now);
    if (header.type() == wire::PUSH) {
      job_.leasing.OnPush(from, header.partition(), header.round());
    }
  }
  void OnPeerConnection(const PeerName& peer, bool connected, TimeUs now) override {
    job_.membership.OnPeerConnection(peer, connected, now);
  }
  Directive OnVersion(int64_t version, const MetricSums& metrics, StepContext* context) override;
  void TakeOver(int64_t version, const Directive& directive, StepContext* context) override;
  void OnDiskAnswer(const DiskAnswer& answer, StepContext* context) override {
    std::visit([&](const auto& one) { On(one, context); }, answer);
  }
  // Saves at the end of the next round, then stops.
  void RequestStop(const ShardStatus&, StepContext*) override { job_.ending.RequestStop(); }
  TimeUs Tick(const ShardStatus& status, StepContext* context) override;
  bool Knows(const PeerName& p, TimeUs, TimeUs) const override { return job_.members().Knows(p); }
  std::string WaitsForProcesses(TimeUs now) const override {
    return kumo::WaitsForProcesses(job_, now);
  }
  wire::JobStatus Describe(TimeUs now) const override { return StatusOf(job_, now); }

 private:
  // Apply what a part has returned to the other parts.
  void Apply(const std::optional<MemberEvent>& event, StepContext* context);
  void Apply(const Effects& effects, StepContext* context);

  void Recover(const MemberEvent& event, StepContext* context);
  void GoBack(const std::string& why, StepContext* context);
  Status OnEvaluated(const PeerName& from, const wire::Header& header, StepContext* context);
  void OnSaved(const PeerName& from, const wire::Header& header, StepContext* context);
  void On(const CheckpointCommitted& committed, StepContext* context);
  void On(const FilesCollected&, StepContext* context) { collected_at_ = context->now; }
  void On(const CheckpointChosen& chosen, StepContext* context);
  void On(const GenerationReserved&, StepContext*) { job_.recovery.OnReserved(); }
  void On(const RunBegun& begun, StepContext* context);
  void On(const CurvesHealth& curves, StepContext*) { job_.curves_failure = curves.failure; }
  void On(const EvaluationKept&, StepContext* context) {
    job_.saving.OnKept();
    FinishIfDone(context);
  }
  // A checkpoint was saved, or failed: tells if that changes whether checkpoints can be saved.
  void TellSavingHealth(int64_t version, StepContext* context);
  void BeginRun(StepContext* context);
  void TickWaiting(StepContext* context);
  void TickTraining(StepContext* context);
  bool IsCollecting(TimeUs limit, TimeUs now) const;
  void EndWith(const std::string& why, StepContext* context);
  void FinishIfDone(StepContext* context);
  void Fail(const Status& status, StepContext* context);

  JobState job_;
  StatusReplies status_replies_;
  bool run_began_ = false;      // BeginRunAction, once in a process
  bool moves_results_ = false;  // training waits for RunBegun
  bool saving_fails_ = false;   // as last told
  TimeUs ticked_at_;
  TimeUs collected_at_ = 0;  // a part of a checkpoint's files; 0: never
};

}  // namespace kumo
