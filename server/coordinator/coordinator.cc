#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/job/round_policy.h"
#include "server/protocol/messages.h"

namespace kumo {

Coordinator::Coordinator(CoordinatorStart start, std::optional<checkpoint::Manifest> restored,
                         TimeUs now)
    : job_(std::move(start), std::move(restored), now), ticked_at_(now - kServerTick) {}

void Coordinator::OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) {
  job_.plan = plan;
  job_.manifests.OnSpec(map, spec);
  job_.leasing.SetCarriesState(RoundPolicy(job_.start.experiment).carried().count() > 0);
  job_.progress.OnSpec(plan, spec, generation().start_version);
}

Result<bool> Coordinator::OnHello(const PeerName& from, const wire::Hello& hello,
                                  StepContext* context) {
  KUMO_ASSIGN_OR_RETURN(const bool joins,
                        job_.folder.Admits(from, hello, generation().number, context));
  if (!joins) return false;
  KUMO_RETURN_IF_ERROR(job_.level.Admits(hello));
  KUMO_ASSIGN_OR_RETURN(const std::optional<MemberEvent> replaced,
                        job_.membership.Replace(from, hello, context));
  Apply(replaced, context);
  Apply(job_.membership.Join(from, hello, context->now), context);
  job_.level.OnJoined(hello);
  return true;
}

Status Coordinator::OnMessage(const PeerName& from, const wire::Header& header,
                              StepContext* context) {
  switch (header.type()) {
    case wire::HEARTBEAT:
      if (const auto event = job_.membership.OnHeartbeat(from, header, context)) {
        Apply(event, context);
        if (from != ServerPeer(0)) SendOrders(job_, from, context);
      }
      return OkStatus();
    case wire::BYE:
      Apply(job_.membership.OnBye(from, header.worker_report()), context);
      if (!IsOver(job_.phase)) return OkStatus();
      job_.shutdown.OnBye();
      if (job_.shutdown.AllKnow(job_.members())) {
        context->Do(ExitAction{job_.shutdown.Outcome(job_.phase, job_.ending.stop())});
      }
      return OkStatus();
    case wire::EVALUATED:
      return OnEvaluated(from, header, context);
    case wire::SAVED:
      OnSaved(from, header, context);
      return OkStatus();
    case wire::INITIALISE:
      if (header.has_origin() && job_.version <= 0 && generation().start_version == 0) {
        job_.manifests.OnOrigin(header.origin(), context);
      }
      return OkStatus();
    case wire::STATUS:
      status_replies_.Answer(from, job_, context);
      return OkStatus();
    default:
      return OkStatus();
  }
}

void Coordinator::Apply(const std::optional<MemberEvent>& event, StepContext* context) {
  if (!event) return;
  if (!event->failure.ok()) Fail(event->failure, context);
  switch (event->kind) {
    case MemberEvent::Kind::kServerJoined:
      if (!job_.recovery.undecided() || !job_.recovery.Decide(job_.members().servers, context))
        return;
      BeginRun(context);
      job_.phase = JobPhase::kTraining;  // the other processes go on where they are
      job_.clock.Moved(context->now);
      job_.membership.MarkRecovering(0);
      job_.leasing.AskForClaims(context->now +
                                FromSeconds(job_.start.experiment.cluster.suspect_after_s));
      return;
    case MemberEvent::Kind::kServerReplaced:
      Recover(*event, context);
      return;
    case MemberEvent::Kind::kServerLost:
      GoBack(event->why, context);
      return;
    default:
      Apply(job_.leasing.On(*event, job_.members(), job_.phase, job_.OldestOpenRound()), context);
  }
}

void Coordinator::Apply(const Effects& effects, StepContext* context) {
  if (!effects.failure.ok()) Fail(effects.failure, context);
  if (!effects.lost_worker.empty()) context->Do(WorkerLostAction{effects.lost_worker});
  if (!effects.go_back.empty()) GoBack(effects.go_back, context);
  const bool saves = effects.save != Effects::Save::kNothing;
  if (saves) {
    const bool partial = effects.save == Effects::Save::kPartial;
    job_.saving.OrderNow(job_.version, partial, job_.progress.Snapshot(context->now), context->now);
  }
  if (saves || effects.orders) SendOrdersToAll(job_, context);
}

// This process was started in the place of a server 0 that died; the other servers had the job's
// versions, and chunk 0 is back. `directive.state` was made with `version`, so it has all sums up
// to it, and names the decisions about the round that is open now. They stand: workers know them.
// Leases come last, since the claims may take the job back, or be incomplete for a while.
void Coordinator::TakeOver(int64_t version, const Directive& directive, StepContext* context) {
  job_.version = version;
  job_.clock.Moved(context->now);
  job_.progress.TakeOver(version, *directive.state, context);
  job_.ending.FinishAt(job_.progress.stops_at());
  job_.manifests.TakeOver(*directive.state);
  job_.saving.CountFrom(context->now);
  job_.ending.TakeOver(version, *directive.state, job_.plan->rounds(), &job_.saving);
  job_.leasing.TakeOver(version, directive.state->move_at(), *job_.plan, context->now);
  Apply(job_.leasing.SettleClaims(job_.members(), generation().since, job_.OldestOpenRound(),
                                  context->now),
        context);
}

// A server was started again, and its shard is lost with its former process. If versions are kept
// twice, the server fetches its shard from the next server, and all other processes go on.
void Coordinator::Recover(const MemberEvent& event, StepContext* context) {
  if (job_.phase != JobPhase::kTraining) return;
  if (!job_.start.experiment.cluster.KeepsVersionsTwice() || job_.version < 0 ||
      job_.ending.why()) {
    GoBack(event.why, context);
    return;
  }
  LOG(WARNING) << event.why << ": it fetches its shard from the next server";
  job_.recovery.GoOn(context);
  job_.membership.MarkRecovering(event.server);
  job_.clock.Moved(context->now);
  job_.progress.Pause();
  job_.ending.LoseSnapshots(job_.plan->rounds(), &job_.saving);
  SendOrdersToAll(job_, context);
}

// The job goes back to the newest good checkpoint, in a new generation.
void Coordinator::GoBack(const std::string& why, StepContext* context) {
  if (job_.phase != JobPhase::kTraining) return;
  if (job_.ending.why()) {  // the rounds that were to be saved before the failure are lost
    Fail(*job_.ending.why(), context);
    return;
  }
  const int64_t saved = job_.saving.checkpoints().last();
  job_.recovery.GoBack(why, std::max(job_.version, saved), context);
  job_.phase = JobPhase::kWaiting;
  job_.version = -1;
  job_.start_gate.Begin(context->now);
  job_.progress.GoBack();
  job_.leasing.GoBack();
  job_.ending.GoBack();
  job_.saving.GoBack(saved, context->now);
  job_.membership.ForgetReports();
  SendOrdersToAll(job_, context);  // members that see the new generation join it
}

void Coordinator::On(const CheckpointChosen& chosen, StepContext* context) {
  if (!generation().choosing) return;
  if (Status status = job_.recovery.OnChosen(chosen.checkpoint, context); !status.ok()) {
    Fail(status, context);
    return;
  }
  const std::optional<checkpoint::Manifest>& restored = job_.recovery.restored();
  job_.start_gate.Begin(context->now);
  job_.saving.GoBack(restored ? restored->version() : -1, context->now);
  job_.manifests.StartFrom(restored);
  job_.progress.StartFrom(restored, job_.plan);
}

// Chunk 0 has reached a version, from which rounds start (JobPlan::RoundsFrom). The order of the
// steps matters:
// 1. The sums of the round are added before the snapshot of the progress, so that a checkpoint of
//    this version has them.
// 2. A move of leases that was directed with the round before takes effect.
// 3. The directive of the last round that starts: the move before save and stop, since leases move
//    only at a version that is saved.
// 4. The state for a successor, which contains the directive, is made last.
Directive Coordinator::OnVersion(int64_t version, const MetricSums& metrics, StepContext* context) {
  const TimeUs now = context->now;
  job_.version = version;
  if (metrics.samples > 0) {
    job_.clock.OnClosed(now);
    job_.progress.OnRound(*job_.plan, version, metrics, context);
  } else {
    job_.clock.Moved(now);  // the job begins or goes on with this version
  }
  job_.ending.FinishAt(job_.progress.stops_at());
  job_.saving.SetProgress(version, job_.progress.Snapshot(now));
  job_.saving.OnVersion(version);
  Apply(job_.leasing.OnVersion(version, version == job_.ending.stop().version(), job_.members(),
                               *job_.plan),
        context);
  job_.progress.ReleaseEvaluations(version, context);

  Directive directive;
  const Range rounds = job_.plan->RoundsFrom(version);
  if (rounds.size() > 0 && rounds.end <= job_.ending.stop().LastOf(job_.plan->rounds())) {
    const bool may_move = job_.phase == JobPhase::kTraining && !job_.saving.IsBehind();
    directive.move = job_.leasing.DirectMove(rounds.end, may_move, job_.members(), now);
    job_.ending.Direct(version, *job_.plan, &directive, &job_.saving, &job_.membership, now);
  }
  if (job_.start.experiment.cluster.KeepsVersionsTwice()) {
    directive.state = SuccessorsState(job_, now);
  }
  return directive;
}

Status Coordinator::OnEvaluated(const PeerName& from, const wire::Header& header,
                                StepContext* context) {
  KUMO_ASSIGN_OR_RETURN(
      const TrainingProgress::Evaluated evaluated,
      job_.progress.OnEvaluated(from, header, leases(), job_.plan, job_.version, context));
  // A repeated evaluation, whose sender keeps it, is no progress.
  if (evaluated.is_new) job_.clock.Moved(context->now);
  if (!evaluated.epoch) return OkStatus();
  job_.saving.KeepEvaluation(*evaluated.epoch, header.round(), generation(), context);
  FinishIfDone(context);
  return OkStatus();
}

void Coordinator::OnSaved(const PeerName& from, const wire::Header& header, StepContext* context) {
  const std::optional<int> server = job_.members().ServerIndex(from);
  if (!server) return;
  if (*server > 0) context->Do(Acknowledgement(from, header));
  const Status saved = job_.saving.OnSaved(*server, header, job_.manifests, generation(),
                                           job_.recovery.restored(), job_.plan, context);
  if (saved.ok()) return;
  const Effects effects = job_.ending.OnSaveFailed(header.round(), saved.message(),
                                                   job_.plan->rounds(), &job_.saving, context->now);
  TellSavingHealth(header.round(), context);
  Apply(effects, context);
}

// A version that is ordered again writes over its files.
void Coordinator::TellSavingHealth(int64_t version, StepContext* context) {
  const std::string& why = job_.saving.failure();
  const bool is_last = job_.ending.why() || job_.saving.last_save().Insists(version);
  if (!why.empty() && !is_last) context->Do(DropCheckpointAction{version});
  if (saving_fails_ == !why.empty()) return;
  saving_fails_ = !why.empty();
  context->Do(SavingHealthAction{version, why, job_.saving.checkpoints().last()});
}

void Coordinator::On(const CheckpointCommitted& committed, StepContext* context) {
  const Effects effects = job_.ending.OnCommitted(committed.version, committed.status,
                                                  job_.plan->rounds(), &job_.saving, context->now);
  TellSavingHealth(committed.version, context);
  FinishIfDone(context);
  Apply(effects, context);
}

TimeUs Coordinator::Tick(const ShardStatus&, StepContext* context) {
  if (context->now < ticked_at_ + kServerTick) return ticked_at_ + kServerTick;
  // One event at a time: each may change the table in which the next one is looked for.
  if (!IsOver(job_.phase)) {
    job_.membership.Listen(context->now - ticked_at_, context->now);
    while (const auto event = job_.membership.Next(context->now)) Apply(event, context);
  }
  ticked_at_ = context->now;
  switch (job_.phase) {
    case JobPhase::kWaiting:
      TickWaiting(context);
      break;
    case JobPhase::kTraining:
      TickTraining(context);
      break;
    default:
      if (job_.shutdown.IsOver(job_.members(), context->now)) {
        context->Do(ExitAction{job_.shutdown.Outcome(job_.phase, job_.ending.stop())});
      } else {
        SendOrdersToAll(job_, context);
      }
  }
  return ticked_at_ + kServerTick;
}

void Coordinator::BeginRun(StepContext* context) {
  if (run_began_) return;
  run_began_ = true;
  context->Do(BeginRunAction{generation().number, job_.progress.metrics()});
}

void Coordinator::On(const RunBegun& begun, StepContext* context) {
  moves_results_ = false;
  if (!begun.status.ok()) Fail(begun.status, context);
}

// No checkpoint may be saved before the earlier run's checkpoints are moved.
void Coordinator::TickWaiting(StepContext* context) {
  if (moves_results_) return;
  const std::optional<Status> decided =
      job_.start_gate.Tick(job_.recovery, job_.membership, job_.plan.has_value(),
                           job_.ending.stop().requested(), context->now);
  if (decided && !decided->ok()) Fail(*decided, context);
  if (!decided || !decided->ok()) return;
  const ResumeFrom::Kind from = job_.start.experiment.checkpoint.resume.kind;
  const bool sets_aside = from == ResumeFrom::Kind::kNever || from == ResumeFrom::Kind::kRound;
  moves_results_ = sets_aside && !run_began_;
  BeginRun(context);
  if (moves_results_) return;
  job_.phase = JobPhase::kTraining;
  job_.clock.Moved(context->now);
  job_.saving.CountFrom(context->now);
  job_.leasing.Begin(job_.members(), generation().start_version, context->now);
  SendOrdersToAll(job_, context);
}

// Whether the checkpoint of the newest version is being fetched from the other servers' disks,
// which may take longer than a round.
bool Coordinator::IsCollecting(TimeUs limit, TimeUs now) const {
  return job_.saving.checkpoints().Has(job_.version) && collected_at_ > 0 &&
         now - collected_at_ <= limit;
}

// At most one of these per tick, in this order: the last version is being saved; the job is to stop
// but cannot close its round; no round has closed for too long; a straggler is helped.
void Coordinator::TickTraining(StepContext* context) {
  const TimeUs now = context->now;
  Apply(job_.leasing.SettleClaims(job_.members(), generation().since, job_.OldestOpenRound(), now),
        context);
  if (job_.phase != JobPhase::kTraining) return;
  const TimeUs limit = FromSeconds(job_.start.experiment.cluster.stall_timeout_s);
  // Without a worker for some partition the open round cannot close. A restarted server 0 waits for
  // the workers' claims first, and for chunk 0.
  const bool no_worker = !job_.leasing.collects_claims() &&
                         (job_.members().workers.empty() || job_.membership.alone() ||
                          job_.leasing.table().HasOrphans());
  if (const std::optional<Effects> effects = job_.ending.Tick(job_.version, job_.saving, now)) {
    Apply(*effects, context);
  } else if (job_.ending.stop().IsAheadOf(job_.version) && no_worker) {
    EndWith("stopped while there were too few workers", context);
  } else if (job_.clock.Standstill(now) > limit && !IsCollecting(limit, now)) {
    EndWith("no round has closed for " + InWholeSeconds(limit) +
                " (cluster.stall_timeout_s): waited for " + WaitsFor(job_, now),
            context);
  } else {
    // Another shard may be behind chunk 0. At the end, the last evaluation may be missing.
    const int64_t round = job_.OldestOpenRound();
    const std::vector<int> missing =
        job_.plan && round == job_.plan->rounds()
            ? job_.progress.Unevaluated(job_.start.experiment.sync.partitions)
            : job_.members().MissingPartitions(round);
    Apply(job_.leasing.HelpStragglers(missing, round, job_.members(), job_.clock, now), context);
  }
}

void Coordinator::EndWith(const std::string& why, StepContext* context) {
  const std::string& first = job_.leasing.first_loss();
  Status status =
      Unavailable(first.empty() ? why : why + "; the first worker that was lost: " + first);
  Apply(job_.ending.Begin(std::move(status), job_.version, job_.leasing.loss_takes_back(),
                          job_.saving.checkpoints(), context->now),
        context);
}

void Coordinator::FinishIfDone(StepContext* context) {
  if (job_.phase != JobPhase::kTraining || !job_.plan) return;
  if (!job_.ending.HasEnded(job_.version, job_.plan->rounds(),
                            job_.progress.complete() && !job_.saving.keeps_evaluations(),
                            job_.saving.checkpoints()))
    return;
  job_.phase = JobPhase::kFinished;
  job_.shutdown.OnFinished(context->now);
  SendOrdersToAll(job_, context);
}

void Coordinator::Fail(const Status& status, StepContext* context) {
  if (IsOver(job_.phase)) return;
  LOG(ERROR) << status.message();
  job_.phase = JobPhase::kFailed;
  job_.shutdown.OnFailed(status);
  SendOrdersToAll(job_, context);
}

}  // namespace kumo
