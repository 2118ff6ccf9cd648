#include "server/coordinator/coordinator.h"

#include <algorithm>
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
    : job_(std::move(settings), std::move(restored), now), ticked_at_(now - kTick) {}

void Coordinator::OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) {
  job_.plan = plan;
  job_.manifests.OnSpec(map, spec);
  job_.leasing.SetCarriesState(job_.settings.CarriesState(spec));
  job_.progress.OnSpec(plan, spec, generation().start_version);
}

Result<bool> Coordinator::OnHello(const PeerName& from, const wire::Hello& hello, Turn* turn) {
  KUMO_ASSIGN_OR_RETURN(const bool joins,
                        job_.folder.Admits(from, hello, generation().number, turn));
  if (!joins) return false;
  KUMO_ASSIGN_OR_RETURN(const std::optional<News> replaced,
                        job_.membership.Replace(from, hello, turn));
  Follow(replaced, turn);
  Follow(job_.membership.Join(from, hello, turn->now), turn);
  return true;
}

Status Coordinator::OnMessage(const PeerName& from, const wire::Header& header, Turn* turn) {
  switch (header.type()) {
    case wire::HEARTBEAT:
      if (const auto news = job_.membership.OnHeartbeat(from, header, turn)) {
        Follow(news, turn);
        if (from != ServerPeer(0)) SendOrders(job_, from, turn);
      }
      return OkStatus();
    case wire::BYE:
      Follow(job_.membership.OnBye(from, header.worker_report()), turn);
      if (!IsOver(job_.phase)) return OkStatus();
      job_.farewell.OnBye();
      if (job_.farewell.AllKnow(job_.members())) {
        turn->Do(ExitAction{job_.farewell.Outcome(job_.phase, job_.ending.stop())});
      }
      return OkStatus();
    case wire::EVALUATED:
      return OnEvaluated(from, header, turn);
    case wire::SAVED:
      OnSaved(from, header, turn);
      return OkStatus();
    case wire::INITIALISE:
      if (header.has_origin() && job_.version <= 0 && generation().start_version == 0) {
        job_.manifests.OnOrigin(header.origin(), turn);
      }
      return OkStatus();
    case wire::STATUS:
      status_replies_.Answer(from, job_, turn);
      return OkStatus();
    default:
      return OkStatus();
  }
}

void Coordinator::Follow(const std::optional<News>& news, Turn* turn) {
  if (!news) return;
  if (!news->failure.ok()) Fail(news->failure, turn);
  switch (news->kind) {
    case News::Kind::kServerJoined:
      if (!job_.recovery.undecided() || !job_.recovery.Decide(job_.members().servers, turn)) return;
      job_.phase = Phase::kTraining;  // the others go on where they are
      job_.clock.Moved(turn->now);
      job_.membership.MarkRecovering(0);
      job_.leasing.AskForClaims(turn->now + FromSeconds(job_.settings.cluster.suspect_after_s));
      return;
    case News::Kind::kServerReplaced:
      Recover(*news, turn);
      return;
    case News::Kind::kServerLost:
      GoBack(news->why, turn);
      return;
    default:
      SeeTo(job_.leasing.On(*news, job_.members(), job_.phase, job_.OldestOpenRound()), turn);
  }
}

void Coordinator::SeeTo(const Consequence& what, Turn* turn) {
  if (!what.failure.ok()) Fail(what.failure, turn);
  if (!what.go_back.empty()) GoBack(what.go_back, turn);
  const bool saves = what.save != Consequence::Save::kNothing;
  if (saves) {
    const bool partial = what.save == Consequence::Save::kPartial;
    job_.saving.OrderNow(job_.version, partial, job_.progress.Snapshot(turn->now), turn->now);
  }
  if (saves || what.orders) SendOrdersToAll(job_, turn);
}

void Coordinator::TakeOver(int64_t version, const Directive& said, Turn* turn) {
  job_.version = version;
  job_.clock.Moved(turn->now);
  job_.progress.TakeOver(version, *said.state, turn);
  job_.manifests.TakeOver(*said.state);
  job_.saving.CountFrom(turn->now);
  job_.ending.TakeOver(version, said, job_.plan->rounds(), &job_.saving);
  job_.leasing.TakeOver(version, said.move ? said.state->move_at() : -1, turn->now);
  SeeTo(job_.leasing.SettleClaims(job_.members(), generation().since, job_.OldestOpenRound(),
                                  turn->now),
        turn);
}

// A server has died with its part of the weights, and was started again. Where versions are
// kept twice it fetches that part, and everybody else goes on where he is.
void Coordinator::Recover(const News& news, Turn* turn) {
  if (job_.phase != Phase::kTraining) return;
  if (!job_.settings.cluster.KeepsVersionsTwice() || job_.version < 0 || job_.ending.why()) {
    GoBack(news.why, turn);
    return;
  }
  LOG(WARNING) << news.why << ": it fetches what it held from the next server";
  job_.recovery.GoOn(turn);
  job_.membership.MarkRecovering(news.server);
  job_.clock.Moved(turn->now);
  job_.progress.Pause();
  job_.ending.LoseSnapshots(job_.plan->rounds(), &job_.saving);
  SendOrdersToAll(job_, turn);
}

// The job goes on from the newest good checkpoint, in a generation of its own.
void Coordinator::GoBack(const std::string& why, Turn* turn) {
  if (job_.phase != Phase::kTraining) return;
  if (job_.ending.why()) {  // what was to be saved first is gone
    Fail(*job_.ending.why(), turn);
    return;
  }
  const int64_t saved = job_.saving.checkpoints().last();
  job_.recovery.GoBack(why, std::max(job_.version, saved), turn);
  job_.phase = Phase::kWaiting;
  job_.version = -1;
  job_.waiting.Begin(turn->now);
  job_.progress.GoBack();
  job_.leasing.GoBack();
  job_.ending.GoBack();
  job_.saving.GoBack(saved, turn->now);
  job_.membership.ForgetReports();
  SendOrdersToAll(job_, turn);  // whoever sees the new generation joins it
}

void Coordinator::On(const CheckpointChosen& chosen, Turn* turn) {
  if (!generation().choosing) return;
  if (Status status = job_.recovery.OnChosen(chosen.checkpoint, turn); !status.ok()) {
    Fail(status, turn);
    return;
  }
  const std::optional<checkpoint::Manifest>& restored = job_.recovery.restored();
  job_.waiting.Begin(turn->now);
  job_.saving.GoBack(restored ? restored->version() : -1, turn->now);
  job_.manifests.StartFrom(restored);
  job_.progress.StartFrom(restored, job_.plan);
}

Directive Coordinator::OnVersion(int64_t version, const checkpoint::SampleSums& metrics,
                                 Turn* turn) {
  const TimeUs now = turn->now;
  job_.version = version;
  job_.clock.OnClosed(now);
  if (metrics.samples() > 0) job_.progress.OnRound(*job_.plan, version, metrics, turn);
  job_.saving.SetProgress(version, job_.progress.Snapshot(now));
  SeeTo(job_.leasing.OnVersion(version, version == job_.ending.stop().version(), job_.members()),
        turn);
  job_.progress.ReleaseEvaluations(version, turn);

  Directive directive;
  if (version < job_.ending.stop().LastOf(job_.plan->rounds())) {
    const bool may_move =
        job_.phase == Phase::kTraining && !job_.saving.checkpoints().IsBehind(version + 1);
    directive.move = job_.leasing.DirectMove(version + 1, may_move, job_.members(), now);
    job_.ending.Direct(version, *job_.plan, &directive, &job_.saving, &job_.membership, now);
  }
  if (job_.settings.cluster.KeepsVersionsTwice()) {
    directive.state = SuccessorsState(job_, directive, now);
  }
  return directive;
}

Status Coordinator::OnEvaluated(const PeerName& from, const wire::Header& header, Turn* turn) {
  KUMO_ASSIGN_OR_RETURN(
      const TrainingProgress::Evaluated evaluated,
      job_.progress.OnEvaluated(from, header, leases(), job_.plan, job_.version, turn));
  // One that is sent again, since it is held, moves nothing.
  if (evaluated.is_new) job_.clock.Moved(turn->now);
  if (!evaluated.epoch) return OkStatus();
  job_.saving.KeepEvaluation(*evaluated.epoch, header.round(), generation(), turn);
  FinishIfDone(turn);
  return OkStatus();
}

void Coordinator::OnSaved(const PeerName& from, const wire::Header& header, Turn* turn) {
  const std::optional<int> server = job_.members().ServerIndex(from);
  if (!server) return;
  if (*server > 0) turn->Do(Acknowledgement(from, header));
  const Status saved =
      job_.saving.OnSaved(*server, header, job_.manifests, job_.recovery, job_.plan, turn);
  if (saved.ok()) return;
  SeeTo(job_.ending.OnSaveFailed(header.round(), saved.message(), job_.plan->rounds(), &job_.saving,
                                 turn->now),
        turn);
}

void Coordinator::On(const CheckpointCommitted& committed, Turn* turn) {
  const Consequence what = job_.ending.OnCommitted(committed.version, committed.status,
                                                   job_.plan->rounds(), &job_.saving, turn->now);
  FinishIfDone(turn);
  SeeTo(what, turn);
}

TimeUs Coordinator::Tick(const Standing&, Turn* turn) {
  if (turn->now < ticked_at_ + kTick) return ticked_at_ + kTick;
  if (!IsOver(job_.phase)) {
    job_.membership.Listen(turn->now - ticked_at_, turn->now);
    while (const auto news = job_.membership.Next(turn->now)) Follow(news, turn);
  }
  ticked_at_ = turn->now;
  switch (job_.phase) {
    case Phase::kWaiting:
      TickWaiting(turn);
      break;
    case Phase::kTraining:
      TickTraining(turn);
      break;
    default:
      if (job_.farewell.IsOver(job_.members(), turn->now)) {
        turn->Do(ExitAction{job_.farewell.Outcome(job_.phase, job_.ending.stop())});
      } else {
        SendOrdersToAll(job_, turn);
      }
  }
  return ticked_at_ + kTick;
}

void Coordinator::TickWaiting(Turn* turn) {
  const std::optional<Status> decided =
      job_.waiting.Tick(job_.recovery, job_.membership, job_.plan.has_value(),
                        job_.ending.stop().requested(), turn->now);
  if (decided && !decided->ok()) Fail(*decided, turn);
  if (!decided || !decided->ok()) return;
  job_.phase = Phase::kTraining;
  job_.clock.Moved(turn->now);
  job_.saving.CountFrom(turn->now);
  job_.leasing.Begin(job_.members(), generation().start_version, turn->now);
  SendOrdersToAll(job_, turn);
}

void Coordinator::TickTraining(Turn* turn) {
  const TimeUs now = turn->now;
  SeeTo(job_.leasing.SettleClaims(job_.members(), generation().since, job_.OldestOpenRound(), now),
        turn);
  if (job_.phase != Phase::kTraining) return;
  const TimeUs limit = FromSeconds(job_.settings.cluster.stall_timeout_s);
  const bool nobody = job_.members().workers.empty() || job_.membership.alone() ||
                      (job_.leasing.table().HasOrphans() && !job_.leasing.collects_claims());
  if (const std::optional<Consequence> what = job_.ending.Tick(job_.version, job_.saving, now)) {
    SeeTo(*what, turn);
  } else if (job_.ending.stop().IsAheadOf(job_.version) && nobody) {  // brings the round to its end
    EndWith("stopped while there were too few workers", turn);
  } else if (job_.clock.Standstill(now) > limit) {
    EndWith("no round has closed for " + InWholeSeconds(limit) +
                " (cluster.stall_timeout_s): waited for " + WaitsFor(job_, now),
            turn);
  } else {
    // A shard may be a round behind; at the end it is the last evaluation that may be waited for.
    const int64_t round = job_.OldestOpenRound();
    const std::vector<int> missing = job_.plan && round == job_.plan->rounds()
                                         ? job_.progress.Unevaluated(job_.settings.partitions)
                                         : job_.members().MissingPartitions(round);
    SeeTo(job_.leasing.HelpStragglers(missing, round, job_.members(), job_.clock, now), turn);
  }
}

void Coordinator::EndWith(const std::string& why, Turn* turn) {
  const std::string& first = job_.leasing.first_loss();
  Status status = Unavailable(first.empty() ? why : why + "; the first to be lost was " + first);
  SeeTo(job_.ending.Begin(std::move(status), job_.version, job_.leasing.loss_takes_back(),
                          job_.saving.checkpoints(), turn->now),
        turn);
}

void Coordinator::FinishIfDone(Turn* turn) {
  if (job_.phase != Phase::kTraining || !job_.plan) return;
  if (!job_.ending.HasEnded(job_.version, job_.plan->rounds(),
                            job_.progress.complete() && !job_.saving.keeps_evaluations(),
                            job_.saving.checkpoints()))
    return;
  job_.phase = Phase::kFinished;
  job_.farewell.OnFinished(turn->now);
  SendOrdersToAll(job_, turn);
}

void Coordinator::Fail(const Status& status, Turn* turn) {
  if (IsOver(job_.phase)) return;
  LOG(ERROR) << status.message();
  job_.phase = Phase::kFailed;
  job_.farewell.OnFailed(status);
  SendOrdersToAll(job_, turn);
}

}  // namespace kumo
