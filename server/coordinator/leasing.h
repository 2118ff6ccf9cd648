// Who is to compute what, from when: what becomes of partitions (lease_table.h) as workers come and
// go.
//
// When a worker is lost, its partitions go to the others at once; when one joins or is told to
// leave, leases move at a round whose end was saved, so that what a partition carries moves along.
// Where a round takes much longer than it should, whoever is done with it computes what is missing
// too. A coordinator that has taken the place of one that died learns from the workers which leases
// there are (claims.h), and changes nothing before.
//
// What it wants of a worker is repeated whole in each order, so a lost message changes nothing.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/coordinator/lease_recovery.h"
#include "server/coordinator/member_table.h"
#include "server/coordinator/membership_tracker.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/round_clock.h"
#include "server/protocol/lease_table.h"

namespace kumo {

class Leasing {
 public:
  Leasing(int partitions, const Experiment::Cluster& cluster);

  const LeaseTable& table() const { return table_; }
  // Workers are asked for their claims: there are no orders until then.
  bool collects_claims() const { return claims_.pending(); }
  // What partitions carry is part of the result: the job does not go on without it.
  bool loss_takes_back() const { return carries_state_ && exact_; }
  // The first worker that was lost since a round has closed, and why; or "".
  const std::string& first_loss() const { return first_loss_; }

  // Whether partitions carry anything from round to round.
  void SetCarriesState(bool carries) { carries_state_ = carries; }
  // The training begins at round `start`, with the workers that there are (at least one).
  void Begin(const MemberTable& members, int64_t start, TimeUs now);
  // The job goes back: nobody has a lease.
  void GoBack();

  // What follows from a worker's news. open: the oldest round that may be open.
  Effects On(const MemberEvent& news, const MemberTable& members, Phase phase, int64_t open);

  // The others go on where they are, and say until then which partitions are theirs.
  void AskForClaims(TimeUs until) { claims_.AskUntil(until); }
  // Chunk 0 is back at `version`, and leases were to move at `move_at`; -1: they were not.
  void TakeOver(int64_t version, int64_t move_at, TimeUs now);
  // Nothing as long as claims are incomplete and there is time. since: as in Claims.
  Effects SettleClaims(const MemberTable& members, uint32_t since, int64_t open, TimeUs now);

  // Whether leases move at `next`, the version that is made next; may: whether that can be decided
  // now, where it has not been.
  bool DirectMove(int64_t next, bool may, const MemberTable& members, TimeUs now);
  // Chunk 0 has reached a version. stops: the job ends with it.
  Effects OnVersion(int64_t version, bool stops, const MemberTable& members);
  // `missing` are the partitions that a round waits for.
  Effects HelpStragglers(const std::vector<int>& missing, int64_t round, const MemberTable& members,
                         const RoundClock& clock, TimeUs now);

  // What a worker is told of its leases.
  void FillIn(const PeerName& worker, const MemberTable& members, Phase phase,
              wire::Orders* orders) const;
  // What a server is told of everybody's, where it goes by another table.
  void FillIn(const ServerMember& server, Phase phase, wire::Orders* orders) const;

 private:
  Effects Lose(const MemberEvent& news, const MemberTable& members, Phase phase, int64_t open);
  Effects LetGo(const PeerName& worker, const MemberTable& members, int64_t open);
  Effects LeaseOrphans(const MemberTable& members, int64_t open);

  int min_workers_;
  bool exact_;  // cluster.recovery
  bool carries_state_ = false;
  LeaseTable table_;
  LeaseRecovery claims_;
  bool move_wanted_ = false;  // a worker joined or leaves: at the next chance
  int64_t move_at_ = -1;      // the saved version at which they move
  TimeUs last_move_ = 0;
  std::string first_loss_;
};

}  // namespace kumo
