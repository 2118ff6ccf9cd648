// The coordinator's part in losses: who is gone, where the job goes on from, and who goes on.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <glog/logging.h>

#include "server/coordinator/coordinator.h"

namespace kumo {
namespace {

// A round straggles when it takes so many times what it should, and at least so long.
constexpr double kStraggling = 1.5;
constexpr double kLeastStraggling = 1000;  // milliseconds

}  // namespace

Status Coordinator::OnServerHello(const PeerName& from, const wire::Hello& hello, TimeUs now,
                                  ServerActions* actions) {
  ServerMember& server = members_.servers[hello.server_index()];
  const std::string who = "server " + std::to_string(hello.server_index()) + " on " + hello.host();
  const bool another = !server.peer.empty() && server.hello.incarnation() != hello.incarnation();
  if (replaced_servers_.contains({hello.server_index(), hello.incarnation()}) ||
      (another && IsLate(hello, server.hello))) {
    return FailedPrecondition("another process has taken the place of " + who);
  }
  if (another) {
    if (replaced_servers_.size() < kMaxWorkers) {
      replaced_servers_.emplace(hello.server_index(), server.hello.incarnation());
    }
    server = ServerMember();
    if (phase_ == Phase::kTraining) {
      Recover(hello.server_index(), who + " was started again", now, actions);
    }
  }
  server.peer = from;
  server.hello = hello;
  server.seen = server.back_at = now;
  if (undecided_) Decide(now, actions);
  return OkStatus();
}

// Where versions are kept twice this process may have taken the place of a server 0 that died, and
// all that the job is about may still be with the others. They say so in their hellos, so it is
// known when they are all there.
void Coordinator::Decide(TimeUs now, ServerActions* actions) {
  const auto& servers = members_.servers;
  const uint32_t since = servers[1].hello.since();
  for (size_t i = 1; i < servers.size(); ++i) {
    if (servers[i].peer.empty()) return;
  }
  const bool all_there =
      since > 0 && servers[1].hello.holds_replica() &&
      std::all_of(servers.begin() + 1, servers.end(),
                  [&](const ServerMember& server) { return server.hello.since() == since; });
  undecided_ = choosing_ = false;
  if (!all_there) {
    actions->push_back(WentBackAction{restored_ ? start_version_ : -1,
                                      restored_ ? restored_->progress().samples() : -1,
                                      "nothing newer is in the servers' memory"});
    return;
  }
  LOG(WARNING) << "takes the place of a server 0 that has died: the others go on where they are";
  since_ = since;
  phase_ = Phase::kTraining;
  moved_at_ = now;
  members_.servers[0].recovering = true;
  claims_until_ = now + FromSeconds(experiment_.cluster.suspect_after_s);
}

void Coordinator::TakeOver(int64_t version, const Directive& said, TimeUs now,
                           ServerActions* actions) {
  version_ = taken_over_at_ = version;
  moved_at_ = spread_last_ = now;
  ledger_ = EpochLedger(*said.state);
  elapsed_before_ = said.state->progress().elapsed_seconds() - ToSeconds(now - started_);
  if (said.state->has_origin()) origin_ = said.state->origin();
  actions->push_back(WentOnAction{version, ledger_.progress().samples()});
  if (said.stop || said.state->stop_at() == version) stop_at_ = said.state->stop_at();
  if (said.move) spread_at_ = said.state->move_at();
  checkpoints_.CountFrom(now);
  // What the others have saved of it is of a generation that is over.
  const int64_t last = LastVersion();
  const bool was_ordered = last == version || (said.save && last == version + 1);
  if (was_ordered && checkpoints_.last() < last) checkpoints_.OrderLater(last, SaveLimit(last));
  TickClaims(now, actions);
}

bool Coordinator::CollectsClaims() const { return claims_until_ > 0; }

// The leases as workers say they are. Whether each partition is somebody's, with what it carries.
bool Coordinator::TakeClaims() {
  const auto known = [&](int partition) {
    return partition >= 0 && partition < plan_->settings().partitions;
  };
  leases_.Clear();
  std::map<int, PeerName> waiting;
  for (const auto& [peer, worker] : members_.workers) {
    if (worker.hello.since() != since_) continue;
    for (const auto& claim : worker.hello.claims()) {
      // The job has gone on without it.
      const bool late = CarriesState() && claim.round() < taken_over_at_;
      if (!known(claim.partition()) || late) continue;
      leases_.Claim(claim.partition(), peer, claim.from());
      if (claim.waits()) waiting[claim.partition()] = peer;
    }
  }
  for (const auto& [peer, worker] : members_.workers) {
    if (worker.hello.since() != since_) continue;
    for (const auto& hand_over : worker.hello.hands_over()) {
      if (!known(hand_over.partition())) continue;
      leases_.ClaimHandOver(hand_over.partition(), peer, hand_over.version());
    }
  }
  return !leases_.HasOrphans() &&
         std::all_of(waiting.begin(), waiting.end(), [&](const auto& entry) {
           const LeaseTable::Lease& lease = leases_.leases()[entry.first];
           return lease.worker != entry.second || !lease.before.empty();
         });
}

// Partitions are with the workers that say so; those that nobody has claimed in time are lost with
// their workers.
void Coordinator::TickClaims(TimeUs now, ServerActions* actions) {
  if (!CollectsClaims() || taken_over_at_ < 0) return;
  const bool complete = TakeClaims();
  if (!complete && now < claims_until_) {
    leases_.Clear();
    return;
  }
  claims_until_ = 0;
  if (!complete && LossTakesBack()) {
    GoBack("a worker is lost with what its partitions carried, and server 0", now, actions);
    return;
  }
  for (const auto& [peer, worker] : members_.workers) {
    if (worker.leaving) LetGo(peer, actions);
  }
  LeaseOrphans(actions);
}

void Coordinator::OnBye(const PeerName& from, const wire::Header& header, TimeUs now,
                        ServerActions* actions) {
  for (ServerMember& server : members_.servers) server.said_bye |= server.peer == from;
  OnWorkersBye(from, header, now, actions);
  if (Over() && members_.AllHaveLeft()) Exit(actions);
}

void Coordinator::OnWorkersBye(const PeerName& from, const wire::Header& header, TimeUs now,
                               ServerActions* actions) {
  const WorkerMember* const worker = members_.Find(from);
  if (!worker) return;
  const wire::WorkerReport& report = header.worker_report();
  const std::string who = worker->Name();
  if (static_cast<StatusCode>(report.failure_code()) == StatusCode::kFailedPrecondition) {
    // A retry cannot help, on another worker neither.
    Fail(FailedPrecondition(who + ": " + report.failure()), actions);
  }
  if (report.handed_over()) leases_.HandedOver(from);
  Lose(from, report.failure().empty() ? "it left" : report.failure(), now, actions);
}

void Coordinator::Lose(const PeerName& peer, const std::string& why, TimeUs now,
                       ServerActions* actions) {
  const WorkerMember* const worker = members_.Find(peer);
  if (!worker) return;
  const std::string who = worker->Name();
  members_.workers.erase(peer);
  const bool lost = leases_.Lose(peer, OldestOpenRound());
  if (!Over()) {
    LOG(WARNING) << who << (lost ? " is lost: " : " has left: ") << why;
  }
  if (phase_ == Phase::kTraining && lost) OnLost(who, why, now, actions);
}

// Partitions are nobody's now.
void Coordinator::OnLost(const std::string& who, const std::string& why, TimeUs now,
                         ServerActions* actions) {
  if (first_loss_.empty()) first_loss_ = who + ": " + why;
  if (LossTakesBack()) {
    GoBack(who + " is lost with what its partitions carried: " + why, now, actions);
    return;
  }
  LeaseOrphans(actions);
}

// A worker was told to leave. Where its partitions carry nothing, another worker computes the
// blocks under way again; else the partitions move when a round has been saved.
void Coordinator::LetGo(const PeerName& peer, ServerActions* actions) {
  if (phase_ != Phase::kTraining || leases_.Count(peer) == 0) return;
  if (CarriesState()) {
    spread_wanted_ = true;
    return;
  }
  leases_.Lose(peer, OldestOpenRound());
  LeaseOrphans(actions);
}

void Coordinator::LeaseOrphans(ServerActions* actions) {
  if (CollectsClaims()) return;
  const auto takers = members_.Takers(leases_);
  if (static_cast<int>(takers.size()) >= experiment_.cluster.min_workers) {
    leases_.LeaseOrphans(takers, OldestOpenRound());
  }
  SendOrdersToAll(actions);
}

// A server has died with its part of the weights, and was started again. Where versions are
// kept twice it fetches that part, and everybody else goes on where he is.
void Coordinator::Recover(int server, const std::string& why, TimeUs now, ServerActions* actions) {
  if (!experiment_.cluster.KeepsVersionsTwice() || version_ < 0 || ending_) {
    GoBack(why, now, actions);
    return;
  }
  LOG(WARNING) << why << ": it fetches what it held from the next server";
  ++generation_;
  choosing_ = true;
  actions->push_back(ReserveGenerationAction{generation_});
  members_.servers[server].recovering = true;
  moved_at_ = now;
  rate_.Forget();
  // Its snapshots are lost, and those of the others are of a generation that is over.
  const int64_t last = LastVersion();
  if (checkpoints_.Has(last)) checkpoints_.OrderLater(last, SaveLimit(last));
  checkpoints_.FailAll();
  SendOrdersToAll(actions);
}

void Coordinator::OnReserved() { choosing_ = false; }

// The job goes on from the newest good checkpoint, in a generation of its own.
void Coordinator::GoBack(const std::string& why, TimeUs now, ServerActions* actions) {
  if (phase_ != Phase::kTraining) return;
  if (ending_) {  // what was to be saved first is gone
    Fail(*ending_, actions);
    return;
  }
  LOG(WARNING) << why << ": the job goes back to its last checkpoint";
  since_ = ++generation_;
  choosing_ = true;
  went_back_why_ = why;
  phase_ = Phase::kWaiting;
  waiting_since_ = now;
  actions->push_back(ChooseCheckpointAction{generation_, std::max(version_, checkpoints_.last())});
  version_ = -1;
  rate_.Forget();
  leases_.Clear();
  claims_until_ = 0;
  held_evaluations_.clear();
  checkpoints_.GoBack(checkpoints_.last(), now);
  spread_wanted_ = false;
  spread_at_ = stop_at_ = -1;
  for (ServerMember& server : members_.servers) {
    server.report.Clear();
    server.recovering = false;
    server.leaves_at = -1;
  }
  SendOrdersToAll(actions);  // whoever sees the new generation joins it
}

void Coordinator::OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen, TimeUs now,
                           ServerActions* actions) {
  if (!choosing_) return;
  choosing_ = false;
  if (!chosen.ok()) {
    Fail(chosen.status().WithContext(went_back_why_), actions);
    return;
  }
  restored_ = *chosen;
  origin_.reset();
  if (restored_ && restored_->has_origin()) origin_ = restored_->origin();
  start_version_ = restored_ ? restored_->version() : 0;
  checkpoints_.GoBack(restored_ ? start_version_ : -1, now);
  ledger_ = restored_ ? EpochLedger(restored_->progress()) : EpochLedger();
  if (plan_) ledger_.Start(*plan_, start_version_);
  waiting_since_ = now;
  LOG(WARNING) << "generation " << generation_ << " goes back to round " << start_version_ << ": "
               << went_back_why_;
  actions->push_back(WentBackAction{start_version_, ledger_.progress().samples(), went_back_why_});
}

// No shard has closed this round in all its chunks before: a lower bound, since reports are late.
int64_t Coordinator::OldestOpenRound() const {
  const int64_t version = std::max(version_, start_version_);
  return std::max(members_.OldestOpenRound(version), start_version_);
}

// When a round takes much longer than it should, whoever is done with it computes what is missing
// too: the first contribution counts, and both are the same as long as partitions carry nothing.
void Coordinator::HelpStragglers(TimeUs now, ServerActions* actions) {
  const std::vector<LeaseTable::Taker> takers = members_.Takers(leases_);
  const double computing_ms = leases_.TypicalRound(takers);
  if (CarriesState() || computing_ms <= 0) return;
  // A slow network's rounds are long, and doing work twice would make them longer.
  const double expected_ms = std::max(computing_ms, ToSeconds(TypicalRound()) * 1e3);
  const double open_ms = ToSeconds(now - moved_at_) * 1e3;
  if (open_ms < std::max(kLeastStraggling, kStraggling * expected_ms)) return;
  // A shard may be a round behind; at the end it is the last evaluation that may be waited for.
  const int64_t round = OldestOpenRound();
  const std::vector<int> missing = round == plan_->rounds()
                                       ? ledger_.Unevaluated(plan_->settings().partitions)
                                       : members_.MissingPartitions(round);
  if (leases_.Help(missing, round, takers)) SendOrdersToAll(actions);
}

// What the quicker ones of the last rounds took; 0 as long as there are too few.
TimeUs Coordinator::TypicalRound() const {
  if (round_times_.size() < kRoundTimes) return 0;
  std::vector<TimeUs> times(round_times_.begin(), round_times_.end());
  const auto quarter = times.begin() + std::ssize(times) / 4;
  std::nth_element(times.begin(), quarter, times.end());
  return *quarter;
}

// A worker that we hear, and that does not hear a server which we hear too: whatever it computes
// does not arrive there.
void Coordinator::NoticeCuts(TimeUs now, ServerActions* actions) {
  const TimeUs suspect = FromSeconds(experiment_.cluster.suspect_after_s);
  std::vector<PeerName> peers;
  for (const auto& [peer, worker] : members_.workers) peers.push_back(peer);
  for (const PeerName& peer : peers) {
    WorkerMember* const worker = members_.Find(peer);
    if (!worker) continue;
    if (worker->cut_off) {
      if (worker->report.unheard_size() > 0) continue;
      LOG(WARNING) << worker->Name() << " reaches all servers again";
      worker->cut_off = false;
      spread_wanted_ = true;
      if (phase_ == Phase::kTraining) LeaseOrphans(actions);
      continue;
    }
    const std::optional<int> server = members_.CutOffFrom(*worker, now, suspect);
    if (!server) continue;
    worker->cut_off = true;
    const std::string who = worker->Name();
    const std::string why = "it does not reach server " + std::to_string(*server);
    LOG(WARNING) << who << " is cut off: " << why;
    if (phase_ != Phase::kTraining || CollectsClaims()) continue;
    if (leases_.Lose(peer, OldestOpenRound())) OnLost(who, why, now, actions);
  }
}

void Coordinator::NoticeSilence(TimeUs now, ServerActions* actions) {
  const TimeUs suspect = FromSeconds(experiment_.cluster.suspect_after_s);
  // Whoever did not tick has not listened either, and when nobody at all is heard it is us who are
  // cut off: the others are not to be blamed for that.
  const bool held_up = now - ticked_at_ > suspect / 2;
  const bool alone = members_.count() > 1 && now - heard_at_ > suspect / 2;
  LOG_IF(WARNING, held_up) << "was held up for " << InWholeSeconds(now - ticked_at_);
  LOG_IF(WARNING, alone && !alone_) << "nobody is heard";
  if (held_up || (alone_ && !alone)) members_.ForgiveSilence(now);
  alone_ = alone;
  if (alone) return;
  for (const PeerName& peer : members_.SilentWorkers(now, suspect)) {
    Lose(peer, "silent for " + InWholeSeconds(suspect), now, actions);
  }
  NoticeCuts(now, actions);
  // A server's weights may still be there: the job waits until it is back or started again.
  members_.MarkSilentServers(now, suspect);
}

}  // namespace kumo
