#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "server/messages.h"

namespace kumo {
namespace {

constexpr TimeUs kTick = 100 * kMillisecond;

}  // namespace

Coordinator::Coordinator(CoordinatorSettings settings, std::optional<checkpoint::Manifest> restored,
                         TimeUs now)
    : settings_(std::move(settings)),
      ticked_at_(now - kTick),
      membership_(settings_.identity.servers, settings_.host, settings_.cluster, now),
      leasing_(settings_.partitions, settings_.cluster),
      recovery_(settings_.generation, settings_.cluster.KeepsVersionsTwice(), std::move(restored)),
      waiting_(settings_.cluster, now),
      saving_(settings_.checkpoint, recovery_.restored() ? generation().start_version : -1, now),
      manifests_(settings_.identity),
      ending_(FromSeconds(settings_.checkpoint.grace_s),
              FromSeconds(settings_.cluster.stall_timeout_s)),
      progress_(settings_, recovery_.restored(), now) {
  manifests_.StartFrom(recovery_.restored());
}

void Coordinator::OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) {
  plan_ = plan;
  manifests_.OnSpec(map, spec);
  leasing_.SetCarriesState(settings_.CarriesState(spec));
  progress_.OnSpec(plan, spec, generation().start_version);
}

Status Coordinator::OnHello(const PeerName& from, const wire::Hello& hello, Turn* turn) {
  KUMO_ASSIGN_OR_RETURN(const std::optional<News> replaced, membership_.Replace(from, hello, turn));
  Follow(replaced, turn);
  Follow(membership_.Join(from, hello, turn->now), turn);
  return OkStatus();
}

Status Coordinator::OnMessage(const PeerName& from, const wire::Header& header, Turn* turn) {
  switch (header.type()) {
    case wire::HEARTBEAT:
      if (const auto news = membership_.OnHeartbeat(from, header, turn)) {
        Follow(news, turn);
        if (from != ServerPeer(0)) SendOrders(from, turn);
      }
      return OkStatus();
    case wire::BYE:
      Follow(membership_.OnBye(from, header.worker_report()), turn);
      if (IsOver(phase_) && members().AllHaveLeft()) {
        turn->Do(ExitAction{farewell_.Outcome(phase_, ending_.stop())});
      }
      return OkStatus();
    case wire::EVALUATED:
      return OnEvaluated(from, header, turn);
    case wire::SAVED:
      OnSaved(from, header, turn);
      return OkStatus();
    case wire::INITIALISE:
      if (header.has_origin() && version_ <= 0 && generation().start_version == 0) {
        manifests_.OnOrigin(header.origin(), turn);
      }
      return OkStatus();
    case wire::STATUS: {
      SendAction reply{from, {}};
      reply.message.header.set_type(wire::STATUS_REPLY);
      *reply.message.header.mutable_job_status() = Describe(turn->now);
      turn->Do(std::move(reply));
      return OkStatus();
    }
    default:
      return OkStatus();
  }
}

void Coordinator::Follow(const std::optional<News>& news, Turn* turn) {
  if (!news) return;
  if (!news->failure.ok()) Fail(news->failure, turn);
  switch (news->kind) {
    case News::Kind::kServerJoined:
      if (!recovery_.undecided() || !recovery_.Decide(members().servers, turn)) return;
      phase_ = Phase::kTraining;  // the others go on where they are
      clock_.Moved(turn->now);
      membership_.MarkRecovering(0);
      leasing_.AskForClaims(turn->now + FromSeconds(settings_.cluster.suspect_after_s));
      return;
    case News::Kind::kServerReplaced:
      Recover(*news, turn);
      return;
    case News::Kind::kServerLost:
      GoBack(news->why, turn);
      return;
    default:
      SeeTo(leasing_.On(*news, members(), phase_, OldestOpenRound()), turn);
  }
}

void Coordinator::SeeTo(const Consequence& what, Turn* turn) {
  if (!what.failure.ok()) Fail(what.failure, turn);
  if (!what.go_back.empty()) GoBack(what.go_back, turn);
  const bool saves = what.save != Consequence::Save::kNothing;
  if (saves) {
    const bool partial = what.save == Consequence::Save::kPartial;
    saving_.OrderNow(version_, partial, progress_.Snapshot(turn->now), turn->now);
  }
  if (saves || what.orders) SendOrdersToAll(turn);
}

void Coordinator::TakeOver(int64_t version, const Directive& said, Turn* turn) {
  version_ = version;
  clock_.Moved(turn->now);
  progress_.TakeOver(version, *said.state, turn);
  manifests_.TakeOver(*said.state);
  saving_.CountFrom(turn->now);
  ending_.TakeOver(version, said, plan_->rounds(), &saving_);
  leasing_.TakeOver(version, said.move ? said.state->move_at() : -1, turn->now);
  SeeTo(leasing_.SettleClaims(members(), generation().since, OldestOpenRound(), turn->now), turn);
}

// A server has died with its part of the weights, and was started again. Where versions are
// kept twice it fetches that part, and everybody else goes on where he is.
void Coordinator::Recover(const News& news, Turn* turn) {
  if (phase_ != Phase::kTraining) return;
  if (!settings_.cluster.KeepsVersionsTwice() || version_ < 0 || ending_.why()) {
    GoBack(news.why, turn);
    return;
  }
  LOG(WARNING) << news.why << ": it fetches what it held from the next server";
  recovery_.GoOn(turn);
  membership_.MarkRecovering(news.server);
  clock_.Moved(turn->now);
  progress_.Pause();
  ending_.LoseSnapshots(plan_->rounds(), &saving_);
  SendOrdersToAll(turn);
}

// The job goes on from the newest good checkpoint, in a generation of its own.
void Coordinator::GoBack(const std::string& why, Turn* turn) {
  if (phase_ != Phase::kTraining) return;
  if (ending_.why()) {  // what was to be saved first is gone
    Fail(*ending_.why(), turn);
    return;
  }
  const int64_t saved = saving_.checkpoints().last();
  recovery_.GoBack(why, std::max(version_, saved), turn);
  phase_ = Phase::kWaiting;
  version_ = -1;
  waiting_.Begin(turn->now);
  progress_.GoBack();
  leasing_.GoBack();
  ending_.GoBack();
  saving_.GoBack(saved, turn->now);
  membership_.ForgetReports();
  SendOrdersToAll(turn);  // whoever sees the new generation joins it
}

void Coordinator::OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen, Turn* turn) {
  if (!generation().choosing) return;
  if (Status status = recovery_.OnChosen(chosen, turn); !status.ok()) {
    Fail(status, turn);
    return;
  }
  const std::optional<checkpoint::Manifest>& restored = recovery_.restored();
  waiting_.Begin(turn->now);
  saving_.GoBack(restored ? restored->version() : -1, turn->now);
  manifests_.StartFrom(restored);
  progress_.StartFrom(restored, plan_);
}

// No shard has closed this round in all its chunks before: a lower bound, since reports are late.
int64_t Coordinator::OldestOpenRound() const {
  const int64_t start = generation().start_version;
  return std::max(members().OldestOpenRound(std::max(version_, start)), start);
}

Directive Coordinator::OnVersion(int64_t version, const wire::Metrics& metrics, Turn* turn) {
  const TimeUs now = turn->now;
  version_ = version;
  clock_.OnClosed(now);
  if (metrics.samples() > 0) progress_.OnRound(*plan_, version, metrics, turn);
  saving_.SetProgress(version, progress_.Snapshot(now));
  SeeTo(leasing_.OnVersion(version, version == ending_.stop().version(), members()), turn);
  progress_.ReleaseEvaluations(version, turn);

  Directive directive;
  if (version < ending_.stop().LastOf(plan_->rounds())) {
    const bool may_move =
        phase_ == Phase::kTraining && !saving_.checkpoints().IsBehind(version + 1);
    directive.move = leasing_.DirectMove(version + 1, may_move, members(), now);
    ending_.Direct(version, *plan_, &directive, &saving_, &membership_, now);
  }
  if (settings_.cluster.KeepsVersionsTwice()) {
    const auto state = std::make_shared<wire::CoordinatorState>(progress_.State(now));
    if (manifests_.origin()) *state->mutable_origin() = *manifests_.origin();
    state->set_save(directive.save);
    state->set_stop_at(ending_.stop().version());
    state->set_move_at(directive.move ? version + 1 : -1);
    directive.state = state;
  }
  return directive;
}

Status Coordinator::OnEvaluated(const PeerName& from, const wire::Header& header, Turn* turn) {
  KUMO_ASSIGN_OR_RETURN(const TrainingProgress::Evaluated evaluated,
                        progress_.OnEvaluated(from, header, plan_, version_, turn));
  // One that is sent again, since it is held, moves nothing.
  if (evaluated.is_new) clock_.Moved(turn->now);
  if (!evaluated.epoch) return OkStatus();
  saving_.KeepEvaluation(*evaluated.epoch, header.round(), generation(), turn);
  FinishIfDone(turn);
  return OkStatus();
}

void Coordinator::OnSaved(const PeerName& from, const wire::Header& header, Turn* turn) {
  const std::optional<int> server = members().ServerIndex(from);
  if (!server) return;
  if (*server > 0) turn->Do(Acknowledgement(from, header));
  const Status saved = saving_.OnSaved(*server, header, manifests_, recovery_, plan_, turn);
  if (saved.ok()) return;
  SeeTo(ending_.OnSaveFailed(header.round(), saved.message(), plan_->rounds(), &saving_, turn->now),
        turn);
}

void Coordinator::OnCommitted(int64_t version, const Status& status, Turn* turn) {
  const Consequence what =
      ending_.OnCommitted(version, status, plan_->rounds(), &saving_, turn->now);
  FinishIfDone(turn);
  SeeTo(what, turn);
}

TimeUs Coordinator::Tick(const Holdings&, Turn* turn) {
  if (turn->now < ticked_at_ + kTick) return ticked_at_ + kTick;
  if (!IsOver(phase_)) {
    membership_.Listen(turn->now - ticked_at_, turn->now);
    while (const auto news = membership_.Next(turn->now)) Follow(news, turn);
  }
  ticked_at_ = turn->now;
  switch (phase_) {
    case Phase::kWaiting:
      TickWaiting(turn);
      break;
    case Phase::kTraining:
      TickTraining(turn);
      break;
    default:
      if (farewell_.IsOver(turn->now) || members().AllHaveLeft()) {
        turn->Do(ExitAction{farewell_.Outcome(phase_, ending_.stop())});
      } else {
        SendOrdersToAll(turn);
      }
  }
  return ticked_at_ + kTick;
}

void Coordinator::TickWaiting(Turn* turn) {
  const std::optional<Status> decided = waiting_.Tick(recovery_, membership_, plan_.has_value(),
                                                      ending_.stop().requested(), turn->now);
  if (!decided) return;
  if (!decided->ok()) {
    Fail(*decided, turn);
    return;
  }
  phase_ = Phase::kTraining;
  clock_.Moved(turn->now);
  saving_.CountFrom(turn->now);
  leasing_.Begin(members(), generation().start_version, turn->now);
  SendOrdersToAll(turn);
}

void Coordinator::TickTraining(Turn* turn) {
  const TimeUs now = turn->now;
  SeeTo(leasing_.SettleClaims(members(), generation().since, OldestOpenRound(), now), turn);
  if (phase_ != Phase::kTraining) return;
  const TimeUs limit = FromSeconds(settings_.cluster.stall_timeout_s);
  const bool nobody = members().workers.empty() || membership_.alone() ||
                      (leasing_.table().HasOrphans() && !leasing_.collects_claims());
  if (const std::optional<Consequence> what = ending_.Tick(version_, saving_, now)) {
    SeeTo(*what, turn);
  } else if (ending_.stop().IsAheadOf(version_) && nobody) {  // brings the round to its end
    EndWith("stopped while there were too few workers", turn);
  } else if (clock_.Standstill(now) > limit) {
    EndWith("no round has closed for " + InWholeSeconds(limit) +
                " (cluster.stall_timeout_s): waited for " + WaitsFor(now),
            turn);
  } else {
    // A shard may be a round behind; at the end it is the last evaluation that may be waited for.
    const int64_t round = OldestOpenRound();
    const std::vector<int> missing = plan_ && round == plan_->rounds()
                                         ? progress_.Unevaluated(settings_.partitions)
                                         : members().MissingPartitions(round);
    SeeTo(leasing_.HelpStragglers(missing, round, members(), clock_, now), turn);
  }
}

void Coordinator::EndWith(const std::string& why, Turn* turn) {
  const std::string& first = leasing_.first_loss();
  Status status = Unavailable(first.empty() ? why : why + "; the first to be lost was " + first);
  SeeTo(ending_.Begin(std::move(status), version_, leasing_.loss_takes_back(),
                      saving_.checkpoints(), turn->now),
        turn);
}

void Coordinator::FinishIfDone(Turn* turn) {
  if (phase_ != Phase::kTraining || !plan_) return;
  if (!ending_.HasEnded(version_, plan_->rounds(), progress_.complete(), saving_.checkpoints()))
    return;
  phase_ = Phase::kFinished;
  farewell_.OnFinished(turn->now);
  SendOrdersToAll(turn);
}

void Coordinator::Fail(const Status& status, Turn* turn) {
  if (IsOver(phase_)) return;
  LOG(ERROR) << status.message();
  phase_ = Phase::kFailed;
  farewell_.OnFailed(status);
  SendOrdersToAll(turn);
}

void Coordinator::SendOrders(const PeerName& to, Turn* turn) const {
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  header.set_type(wire::HEARTBEAT_REPLY);
  if (!leasing_.collects_claims()) {  // else no orders yet: who has leases goes on with them
    header.set_round(version_);
    header.mutable_orders()->set_waits_for(WaitsForProcesses(turn->now));
    farewell_.FillIn(phase_, ending_.stop(), version_, &header);
    if (const auto server = members().ServerIndex(to)) {
      saving_.FillIn(members().servers[*server], header.mutable_orders());
    }
    leasing_.FillIn(to, members(), phase_, header.mutable_orders());
  }
  turn->Do(std::move(reply));
}

void Coordinator::SendOrdersToAll(Turn* turn) const {
  for (const auto& [peer, worker] : members().workers) SendOrders(peer, turn);
  for (const ServerMember& server : members().servers) {
    if (!server.peer.empty() && !server.said_bye) SendOrders(server.peer, turn);
  }
}

std::string Coordinator::WaitsForProcesses(TimeUs now) const {
  return waiting_.For(phase_, recovery_, membership_, plan_.has_value(), now);
}

std::string Coordinator::WaitsFor(TimeUs now) const {
  const std::string processes = WaitsForProcesses(now);
  if (phase_ != Phase::kTraining || !processes.empty()) return processes;
  return members().WaitsForPartitions(now, leasing_.table());
}

wire::JobStatus Coordinator::Describe(TimeUs now) const {
  constexpr const char* kPhases[] = {"waiting", "training", "finished", "failed"};
  const LeaseTable& leases = leasing_.table();
  wire::JobStatus status;
  status.set_job_name(settings_.identity.job_name);
  status.set_generation(generation().number);
  status.set_phase(kPhases[static_cast<int>(phase_)]);
  status.set_last_checkpoint(saving_.checkpoints().last());
  if (!IsOver(phase_)) status.set_waits_for(WaitsFor(now));
  progress_.Describe(now, std::max(version_, generation().start_version), plan_,
                     leases.TypicalRound(members().Takers(leases)), &status);
  members().Describe(now, leases, &status);
  return status;
}

}  // namespace kumo
