// Leasing: the coordinator's policy for leases (server/protocol/lease_table.h) as workers come and
// go.
//
// - A worker is lost: its partitions go to the others at once, at the oldest round that may be
//   open. With cluster.recovery=exact, and partitions that carry state, the job goes back instead.
// - A worker joins or is told to leave, or rounds would become much shorter with other shares:
//   leases move at a version whose round is saved, so that the states of partitions move along.
// - A round takes much longer than it should, since a worker computes for too long or is silent:
//   workers that have finished the round compute the missing partitions too. The first contribution
//   counts, and both are the same.
// - A coordinator that has taken the place of one that died: LeaseRecovery learns from the workers
//   which leases there are; until then there are no orders.
//
// Orders are repeated whole in each reply, so a lost message changes nothing.
//
// State machines without I/O, owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/job/job_plan.h"
#include "common/job/phase.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/coordinator/effects.h"
#include "server/coordinator/membership.h"
#include "server/protocol/lease_table.h"

namespace kumo {

// Round clock: when the job last moved, and the durations of its last rounds, which show
// stragglers.
//
// Owned by the Coordinator; one thread.
class RoundClock {
 public:
  // The job moved without closing a round: training begins or goes on, or an evaluation has come.
  void Moved(TimeUs now) { moved_at_ = now; }
  // A round has closed.
  void OnClosed(TimeUs now);

  // Time since the job last moved.
  TimeUs Standstill(TimeUs now) const { return now - moved_at_; }
  // First quartile of the durations of the last rounds; 0 while there are too few.
  TimeUs TypicalRound() const;

 private:
  TimeUs moved_at_ = 0;
  std::deque<TimeUs> round_times_;  // durations of the last rounds
};

// Lease recovery: rebuilds the lease table for a coordinator that has taken the place of one that
// died, while the other servers still have the job's versions. Workers claim their partitions in
// their hellos.
//
// A partition belongs to the worker that claims it; a partition that no worker claims in time is
// lost with its worker. Claims of rounds that the job cannot have reached are ignored.
//
// Owned by Leasing; one thread.
class LeaseRecovery {
 public:
  struct Claimed {
    LeaseTable leases;
    bool complete = false;  // each partition has a worker, and its state
  };

  // Collects claims until `time`.
  void AskUntil(TimeUs time) { until_ = time; }
  // Collects no claims any more.
  void Forget() { until_ = 0; }
  bool pending() const { return until_ > 0; }
  // Chunk 0 is back, at `version`; a worker may have computed the rounds before newest_round.
  void TakeOver(int64_t version, int64_t newest_round) {
    taken_over_at_ = version;
    newest_round_ = newest_round;
  }

  // The leases of `partitions` partitions, as claimed by workers that have taken part since the
  // generation `since`; nullopt while they are incomplete and there is time. carries_state: a claim
  // of an earlier version is late, since the job has gone on without the state.
  std::optional<Claimed> Settle(const MemberTable& members, int partitions, uint32_t since,
                                bool carries_state, TimeUs now);

 private:
  Claimed Take(const MemberTable& members, int partitions, uint32_t since,
               bool carries_state) const;

  TimeUs until_ = 0;            // 0: claims are not collected
  int64_t taken_over_at_ = -1;  // chunk 0's version then; -1: not known yet
  int64_t newest_round_ = 0;    // that a worker may compute next, by that version
};

// Leasing. Owned by the Coordinator; one thread.
class Leasing {
 public:
  Leasing(int partitions, const Experiment::Cluster& cluster);

  const LeaseTable& table() const { return table_; }
  // Claims are being collected: there are no orders.
  bool collects_claims() const { return lease_recovery_.pending(); }
  // The loss of a worker takes the job back, since states of partitions are part of the result.
  bool loss_takes_back() const { return carries_state_ && exact_; }
  // The first worker that was lost since the last round closed, and why; or "".
  const std::string& first_loss() const { return first_loss_; }

  // Whether partitions carry state from round to round.
  void SetCarriesState(bool carries) { carries_state_ = carries; }
  // Training begins at round `start` with the present workers (at least one).
  void Begin(const MemberTable& members, int64_t start, TimeUs now);
  // The job goes back: all leases end.
  void GoBack();

  // A worker has come or gone. open: the oldest round that may be open.
  Effects On(const MemberEvent& event, const MemberTable& members, JobPhase phase, int64_t open);

  // The other servers go on where they are: collects claims until then.
  void AskForClaims(TimeUs until) { lease_recovery_.AskUntil(until); }
  // A part of a contribution has arrived at server 0. The values may be anything.
  void OnPush(const PeerName& from, int partition, int64_t round);

  // Chunk 0 is back at `version`. move_at: the version at which leases were to move; -1: none.
  void TakeOver(int64_t version, int64_t move_at, const JobPlan& plan, TimeUs now);
  // Without effect while claims are incomplete and there is time. since: as in LeaseRecovery.
  Effects SettleClaims(const MemberTable& members, uint32_t since, int64_t open, TimeUs now);

  // The version at which leases move, as workers were told; -1: none.
  int64_t move_at() const { return move_at_; }
  // Whether leases move at `next`, the version that a round makes which starts now. may: whether a
  // move can be decided now.
  bool DirectMove(int64_t next, bool may, const MemberTable& members, TimeUs now);
  // Chunk 0 has reached a version. stops: the job ends with it.
  Effects OnVersion(int64_t version, bool stops, const MemberTable& members, const JobPlan& plan);
  // missing: partitions that a round waits for.
  Effects HelpStragglers(std::vector<int> missing, int64_t round, const MemberTable& members,
                         const RoundClock& clock, TimeUs now);

  // Orders of a worker: its leases.
  void FillIn(const PeerName& worker, const MemberTable& members, JobPhase phase,
              wire::Orders* orders) const;
  // Orders of a server: the lease table, if the server's report says that it has another one.
  void FillIn(const ServerMember& server, JobPhase phase, wire::Orders* orders) const;

 private:
  Effects Lose(const MemberEvent& event, const MemberTable& members, JobPhase phase, int64_t open);
  Effects LetGo(const PeerName& worker, const MemberTable& members, int64_t open);
  Effects LeaseOrphans(const MemberTable& members, int64_t open);
  // The takers of now. A worker without a lease counts with its last block's time while it rests.
  std::vector<Taker> Takers(const MemberTable& members, TimeUs now) const;
  // Leases have moved. had: leases of each worker before.
  void Rest(const std::map<PeerName, int64_t>& had, const MemberTable& members);
  bool Straggles(int partition, int64_t round, double computing_ms, const MemberTable& members,
                 TimeUs now) const;

  int min_workers_;
  bool exact_;  // cluster.recovery
  bool carries_state_ = false;
  LeaseTable table_;
  // By partition: the newest round whose contribution has begun to arrive from the holder.
  struct Arriving {
    PeerName worker;
    int64_t round = -1;
  };
  std::vector<Arriving> arriving_;
  LeaseRecovery lease_recovery_;
  bool move_wanted_ = false;  // a worker has joined or leaves: move leases at the next chance
  int64_t move_at_ = -1;      // the saved version at which leases move; -1: none
  TimeUs last_move_ = 0;
  // Workers that were too slow for any partition. Each is tried again after a pause, since it may
  // only have been frozen; the pause doubles if the trial ends the same way.
  struct Resting {
    TimeUs pause = 0;
    TimeUs until = 0;
  };
  std::map<PeerName, Resting> resting_;
  std::string first_loss_;
};

}  // namespace kumo
