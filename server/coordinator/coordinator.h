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

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/job/transport/message.h"
#include "server/coordinator/checkpoints.h"
#include "server/coordinator/coordinator_settings.h"
#include "server/coordinator/ending.h"
#include "server/coordinator/farewell.h"
#include "server/coordinator/leasing.h"
#include "server/coordinator/manifests.h"
#include "server/coordinator/membership.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/recovery.h"
#include "server/coordinator/round_clock.h"
#include "server/coordinator/saving.h"
#include "server/coordinator/training_progress.h"
#include "server/coordinator/waiting.h"
#include "server/directive.h"
#include "server/role.h"
#include "server/turn.h"

namespace kumo {

class Coordinator : public Role {
 public:
  // restored: the manifest of the checkpoint that the job goes on from, if any.
  Coordinator(CoordinatorSettings settings, std::optional<checkpoint::Manifest> restored,
              TimeUs now);

  const Generation& generation() const override { return recovery_.generation(); }
  // Whether a peer takes part: a worker that was not given up, or another server.
  bool Knows(const PeerName& peer, TimeUs, TimeUs) const override { return members().Knows(peer); }
  // The job's spec has become known.
  void OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) override;

  // A hello that CheckHello accepted; the error is the reason to refuse its sender.
  Status OnHello(const PeerName& from, const wire::Hello& hello, Turn* turn) override;
  // A message of who takes part, server 0 itself (ServerPeer(0)) included, which needs no answer:
  // HEARTBEAT, BYE, EVALUATED, SAVED, or INITIALISE of chunk 0, before the shard has it. Any other
  // type changes nothing. InvalidArgument for an evaluation that nobody asked for.
  Status OnMessage(const PeerName& from, const wire::Header& header, Turn* turn) override;
  // The answer to CommitAction.
  void OnCommitted(int64_t version, const Status& status, Turn* turn) override;
  // The answer to ChooseCheckpointAction: nothing when there is no checkpoint to go back to.
  void OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen, Turn* turn) override;
  // The answer to ReserveGenerationAction.
  void OnReserved() override { recovery_.OnReserved(); }
  // A coordinator that was started again: chunk 0 is back, at `version`, with what the former one
  // said about the round that starts from it.
  void TakeOver(int64_t version, const Directive& said, Turn* turn) override;
  // Chunk 0 has reached `version`; what the round that starts from it is to do.
  Directive OnVersion(int64_t version, const wire::Metrics& metrics, Turn* turn) override;

  // What the servers are to save without waiting for a round's end: when nobody is left who could
  // bring the round to its end, or when the disk did not take the last version before.
  const SaveOrder& save_order() const override { return saving_.checkpoints().order(); }
  // Save at the end of the next round, then stop (a first Ctrl-C, a spot notice).
  void RequestStop(const Holdings&, Turn*) override { ending_.RequestStop(); }
  // Does nothing before it is due. When it is due next; the first time it is at once.
  TimeUs Tick(const Holdings& holdings, Turn* turn) override;

  // Whom the job waits for: at its start, when one is lost, when it goes back. "" when all that it
  // needs are there. "server 1 at tcp://beta:7700, 1 of 2 workers"
  std::string WaitsForProcesses(TimeUs now) const override;
  wire::JobStatus Describe(TimeUs now) const override;

 private:
  const Members& members() const { return membership_.members(); }
  int64_t OldestOpenRound() const;
  std::string WaitsFor(TimeUs now) const;

  // What parts tell: of a member, and of what is to be done.
  void Follow(const std::optional<News>& news, Turn* turn);
  void SeeTo(const Consequence& what, Turn* turn);
  void Recover(const News& news, Turn* turn);
  void GoBack(const std::string& why, Turn* turn);
  Status OnEvaluated(const PeerName& from, const wire::Header& header, Turn* turn);
  void OnSaved(const PeerName& from, const wire::Header& header, Turn* turn);
  void TickWaiting(Turn* turn);
  void TickTraining(Turn* turn);
  void EndWith(const std::string& why, Turn* turn);
  void FinishIfDone(Turn* turn);
  void Fail(const Status& status, Turn* turn);
  void SendOrders(const PeerName& to, Turn* turn) const;
  void SendOrdersToAll(Turn* turn) const;

  CoordinatorSettings settings_;
  std::optional<JobPlan> plan_;
  Phase phase_ = Phase::kWaiting;
  TimeUs ticked_at_;
  int64_t version_ = -1;  // of chunk 0
  RoundClock clock_;
  Membership membership_;
  Leasing leasing_;
  Recovery recovery_;
  Waiting waiting_;
  Saving saving_;
  Manifests manifests_;
  Ending ending_;
  Farewell farewell_;
  TrainingProgress progress_;
};

}  // namespace kumo
