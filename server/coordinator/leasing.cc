#include "server/coordinator/leasing.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include <glog/logging.h>

#include "common/job/buggify.h"

namespace kumo {
namespace {

// Moving leases costs a checkpoint: only if rounds become this much shorter, and not often.
constexpr double kWorthMoving = 1.25;
constexpr TimeUs kMovePause = 60 * kSecond;
// The longest pause before a slow worker is tried again.
constexpr TimeUs kLongestRest = 3600 * kSecond;
// A round straggles if it takes this many times its expected time, and at least this long.
constexpr double kStraggling = 1.5;
constexpr double kLeastStraggling = 1000;  // milliseconds

// Rounds whose durations the clock keeps.
constexpr size_t kRoundTimes = 9;

Effects Orders() { return Effects{.orders = true}; }

}  // namespace

void RoundClock::OnClosed(TimeUs now) {
  round_times_.push_back(Standstill(now));
  if (round_times_.size() > kRoundTimes) round_times_.pop_front();
  Moved(now);
}

TimeUs RoundClock::TypicalRound() const {
  if (round_times_.size() < kRoundTimes) return 0;
  std::vector<TimeUs> times(round_times_.begin(), round_times_.end());
  const auto quarter = times.begin() + std::ssize(times) / 4;
  std::nth_element(times.begin(), quarter, times.end());
  return *quarter;
}

Leasing::Leasing(int partitions, const Experiment::Cluster& cluster)
    : min_workers_(cluster.min_workers),
      exact_(cluster.recovery == StateLoss::kExact),
      table_(partitions),
      arriving_(partitions) {}

void Leasing::Begin(const MemberTable& members, int64_t start, TimeUs now) {
  last_move_ = now;
  std::vector<std::pair<std::string, PeerName>> names;
  for (const Taker& taker : members.Takers(table_)) {
    names.emplace_back(members.Find(taker.worker)->hello.name(), taker.worker);
  }
  std::sort(names.begin(), names.end());
  std::vector<PeerName> workers;
  for (const auto& [name, peer] : names) workers.push_back(peer);
  LOG(INFO) << "training starts at round " << start << " with " << workers.size() << " workers";
  table_.Begin(workers, start);
}

void Leasing::GoBack() {
  table_ = LeaseTable(static_cast<int>(table_.leases().size()));
  arriving_.assign(arriving_.size(), {});
  lease_recovery_.Forget();
  move_wanted_ = false;
  move_at_ = -1;
}

Effects Leasing::On(const MemberEvent& event, const MemberTable& members, JobPhase phase,
                    int64_t open) {
  const bool training = phase == JobPhase::kTraining;
  switch (event.kind) {
    case MemberEvent::Kind::kJoined:
      if (!training) return {};
      move_wanted_ |= !collects_claims() || !event.claims;
      return LeaseOrphans(members, open);
    case MemberEvent::Kind::kReaches:
      move_wanted_ = true;
      return training ? LeaseOrphans(members, open) : Effects();
    case MemberEvent::Kind::kLeaves:
      return training ? LetGo(event.peer, members, open) : Effects();
    case MemberEvent::Kind::kGone:
    case MemberEvent::Kind::kCutOff:
      return Lose(event, members, phase, open);
    default:
      return {};
  }
}

Effects Leasing::Lose(const MemberEvent& event, const MemberTable& members, JobPhase phase,
                      int64_t open) {
  if (event.handed_over) table_.HandedOver(event.peer);
  const bool lost_partitions = table_.Lose(event.peer, open);
  Effects effects;
  if (phase == JobPhase::kTraining && lost_partitions) {
    if (first_loss_.empty()) first_loss_ = event.who + ": " + event.why;
    if (loss_takes_back()) {
      effects.go_back = event.who + " is lost with the state of its partitions: " + event.why;
    } else {
      effects = LeaseOrphans(members, open);
    }
  }
  if (event.kind == MemberEvent::Kind::kGone && !IsOver(phase)) {
    const bool lost = lost_partitions || !event.left;
    LOG(WARNING) << event.who << (lost ? " is lost: " : " has left: ") << event.why;
    if (lost) effects.lost_worker = event.who + " is lost: " + event.why;
  }
  return effects;
}

// A worker was told to leave. If its partitions carry no state, other workers compute its blocks
// again at once; otherwise the partitions move at the next version that is saved.
Effects Leasing::LetGo(const PeerName& worker, const MemberTable& members, int64_t open) {
  if (table_.Count(worker) == 0) return {};
  if (carries_state_) {
    move_wanted_ = true;
    return {};
  }
  table_.LetGo(worker, open);
  return LeaseOrphans(members, open);
}

Effects Leasing::LeaseOrphans(const MemberTable& members, int64_t open) {
  if (collects_claims()) return {};
  const auto takers = Takers(members, last_move_);
  if (static_cast<int>(takers.size()) >= min_workers_) AssignOrphans(takers, open, &table_);
  return Orders();
}

void Leasing::OnPush(const PeerName& from, int partition, int64_t round) {
  if (partition < 0 || partition >= std::ssize(arriving_)) return;
  if (table_.leases()[partition].worker != from) return;
  Arriving& arriving = arriving_[partition];
  if (arriving.worker == from && arriving.round >= round) return;
  arriving = {from, round};
}

void Leasing::TakeOver(int64_t version, int64_t move_at, const JobPlan& plan, TimeUs now) {
  lease_recovery_.TakeOver(version, plan.LastOpen(version) + 1);
  last_move_ = now;
  if (move_at > version) move_at_ = move_at;
}

Effects Leasing::SettleClaims(const MemberTable& members, uint32_t since, int64_t open,
                              TimeUs now) {
  const int partitions = static_cast<int>(table_.leases().size());
  const auto claimed = lease_recovery_.Settle(members, partitions, since, carries_state_, now);
  if (!claimed) return {};
  table_ = claimed->leases;
  if (!claimed->complete && loss_takes_back()) {
    return {.go_back = "a worker is lost with the state of its partitions, together with server 0"};
  }
  for (const auto& [peer, worker] : members.workers) {
    if (worker.leaving) LetGo(peer, members, open);
  }
  return LeaseOrphans(members, open);
}

bool Leasing::DirectMove(int64_t next, bool may, const MemberTable& members, TimeUs now) {
  if (may && move_at_ < 0 && !collects_claims()) {
    const bool uneven =
        now - last_move_ > kMovePause && Imbalance(table_, Takers(members, now)) > kWorthMoving;
    if (move_wanted_ || uneven || Buggify(RareWay::kLeasesMove)) {
      move_wanted_ = false;
      last_move_ = now;
      move_at_ = next;
    }
  }
  return move_at_ == next;
}

Effects Leasing::OnVersion(int64_t version, bool stops, const MemberTable& members,
                           const JobPlan& plan) {
  first_loss_.clear();  // the round closed all the same
  table_.Settle(version, plan.OldestOpen(version));
  if (move_at_ < 0 || version < move_at_) return {};
  move_at_ = -1;
  if (collects_claims()) {
    move_wanted_ = true;
    return {};
  }
  if (stops) return {};
  std::map<PeerName, int64_t> had;
  for (const LeaseTable::Lease& lease : table_.leases()) ++had[lease.worker];
  SpreadLeases(Takers(members, last_move_), version, &table_);
  Rest(had, members);
  return Orders();
}

std::vector<Taker> Leasing::Takers(const MemberTable& members, TimeUs now) const {
  std::vector<Taker> takers = members.Takers(table_);
  for (Taker& taker : takers) {
    const auto resting = resting_.find(taker.worker);
    if (resting == resting_.end() || now >= resting->second.until) continue;
    taker.block_ms = members.Find(taker.worker)->block_ms;
  }
  return takers;
}

void Leasing::Rest(const std::map<PeerName, int64_t>& had, const MemberTable& members) {
  std::erase_if(resting_, [&](const auto& entry) { return !members.Find(entry.first); });
  for (const auto& [worker, count] : had) {
    if (table_.Count(worker) > 0) {
      resting_.erase(worker);
    } else if (const WorkerMember* const member = members.Find(worker);
               member && member->MayHoldLeases()) {
      Resting& resting = resting_[worker];
      resting.pause = std::clamp(2 * resting.pause, kMovePause, kLongestRest);
      resting.until = last_move_ + resting.pause;
    }
  }
}

// Whether the partition's worker computes for too long, or is silent. A worker that waits for
// weights, or whose contribution is on its way, is held up by the network, which a copy would make
// slower still. The first part of a contribution may arrive long before the worker's next report,
// which waits behind the rest.
bool Leasing::Straggles(int partition, int64_t round, double computing_ms,
                        const MemberTable& members, TimeUs now) const {
  const PeerName& holder = table_.leases()[partition].worker;
  const Arriving& arriving = arriving_[partition];
  if (arriving.worker == holder && arriving.round >= round) return false;
  const WorkerMember* const worker = members.Find(holder);
  if (worker == nullptr) return true;
  if (worker->report.round() > round) return false;
  if (members.Silence(*worker, now)) return true;
  if (!worker->computing_since) return false;
  const auto partitions = static_cast<double>(std::max<int64_t>(1, table_.Count(holder)));
  return ToSeconds(now - *worker->computing_since) * 1e3 >=
         std::max(kLeastStraggling, kStraggling * computing_ms / partitions);
}

// Only if partitions carry no state: otherwise the helper's contribution would differ.
Effects Leasing::HelpStragglers(std::vector<int> missing, int64_t round, const MemberTable& members,
                                const RoundClock& clock, TimeUs now) {
  const std::vector<Taker> takers = members.Takers(table_);
  const double computing_ms = TypicalRound(table_, takers);
  if (carries_state_ || computing_ms <= 0) return {};
  // On a slow network rounds are long, and computing blocks twice would make them longer.
  const double expected_ms = std::max(computing_ms, ToSeconds(clock.TypicalRound()) * 1e3);
  const double open_ms = ToSeconds(clock.Standstill(now)) * 1e3;
  const bool straggles = open_ms >= std::max(kLeastStraggling, kStraggling * expected_ms);
  const bool rare = Buggify(RareWay::kStragglersHelped);
  if (!straggles && !rare) return {};
  const auto& leases = table_.leases();
  std::erase_if(missing, [&](int partition) {
    // The servers' reports name them.
    if (partition < 0 || partition >= std::ssize(leases)) return true;
    return !rare && !Straggles(partition, round, computing_ms, members, now);
  });
  return AssignHelpers(missing, round, takers, &table_) ? Orders() : Effects();
}

void Leasing::FillIn(const PeerName& to, const MemberTable& members, JobPhase phase,
                     wire::Orders* orders) const {
  const WorkerMember* const worker = members.Find(to);
  if (!worker) return;
  orders->set_released(worker->leaving && table_.Count(to) == 0);
  if (phase != JobPhase::kTraining) return;
  for (size_t p = 0; p < table_.leases().size(); ++p) {
    const LeaseTable::Lease& lease = table_.leases()[p];
    if (lease.worker != to) continue;
    wire::Orders::Lease* order = orders->add_leases();
    order->set_partition(static_cast<int32_t>(p));
    order->set_from(lease.from);
    order->set_handed_over(!lease.before.empty());
  }
  for (const auto& [partition, help] : table_.helpers()) {
    if (help.worker != to) continue;
    wire::Orders::Lease* order = orders->add_leases();
    order->set_partition(partition);
    order->set_from(help.round);
    order->set_until(help.round + 1);
  }
}

void Leasing::FillIn(const ServerMember& server, JobPhase phase, wire::Orders* orders) const {
  if (phase != JobPhase::kTraining) return;
  wire::LeaseTable table = table_.ToWire();
  if (HashOf(table) != server.report.lease_table()) *orders->mutable_lease_table() = table;
}

// --- Lease recovery.

std::optional<LeaseRecovery::Claimed> LeaseRecovery::Settle(const MemberTable& members,
                                                            int partitions, uint32_t since,
                                                            bool carries_state, TimeUs now) {
  if (!pending() || taken_over_at_ < 0) return std::nullopt;
  Claimed claimed = Take(members, partitions, since, carries_state);
  if (!claimed.complete && now < until_) return std::nullopt;
  Forget();
  return claimed;
}

LeaseRecovery::Claimed LeaseRecovery::Take(const MemberTable& members, int partitions,
                                           uint32_t since, bool carries_state) const {
  const auto known = [&](int partition) { return partition >= 0 && partition < partitions; };
  // Published versions of chunk 0 came back with it, and leases may have moved after the last round
  // that starts from one of them.
  const auto possible = [&](const wire::Hello::Claim& claim) {
    return claim.from() >= 0 && claim.from() <= claim.round() && claim.round() <= newest_round_;
  };
  Claimed claimed{LeaseTable(partitions)};
  std::map<int, PeerName> waiting;
  for (const auto& [peer, worker] : members.workers) {
    if (worker.hello.since() != since) continue;
    for (const auto& claim : worker.hello.claims()) {
      if (!known(claim.partition()) || !possible(claim)) {
        LOG_EVERY_T(WARNING, 1) << "ignores a claim of " << worker.Name() << ": partition "
                                << claim.partition() << " from round " << claim.from()
                                << " on, now at round " << claim.round()
                                << ", but chunk 0 is at version " << taken_over_at_;
        continue;
      }
      // The job has gone on without the state of this partition.
      const bool late = carries_state && claim.round() < taken_over_at_;
      if (late) continue;
      claimed.leases.Claim(claim.partition(), peer, claim.from());
      if (claim.waits()) waiting[claim.partition()] = peer;
    }
  }
  for (const auto& [peer, worker] : members.workers) {
    if (worker.hello.since() != since) continue;
    for (const auto& hand_over : worker.hello.hands_over()) {
      if (!known(hand_over.partition())) continue;
      claimed.leases.ClaimHandOver(hand_over.partition(), peer, hand_over.version());
    }
  }
  claimed.complete = !claimed.leases.HasOrphans() &&
                     std::all_of(waiting.begin(), waiting.end(), [&](const auto& entry) {
                       const auto& lease = claimed.leases.leases()[entry.first];
                       return lease.worker != entry.second || !lease.before.empty();
                     });
  return claimed;
}

}  // namespace kumo
