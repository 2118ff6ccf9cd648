#include "server/coordinator/lifecycle.h"

#include <algorithm>
#include <cstddef>

#include <glog/logging.h>

namespace kumo {
namespace {

// Pause between attempts to save the state of a job that cannot go on.
constexpr TimeUs kSaveAgain = 200 * kMillisecond;

Effects Failure(Status status) { return {.failure = std::move(status)}; }

}  // namespace

// --- Recovery.

Recovery::Recovery(uint32_t generation, bool may_be_further,
                   std::optional<checkpoint::Manifest> restored)
    : undecided_(may_be_further) {
  generation_.number = generation_.since = generation;
  generation_.choosing = may_be_further;
  StartFrom(std::move(restored));
}

void Recovery::StartFrom(std::optional<checkpoint::Manifest> restored) {
  restored_ = std::move(restored);
  generation_.start_version = restored_ ? restored_->version() : 0;
  generation_.restore = restored_ ? restored_->name() : "";
}

// This process may have taken the place of a server 0 that died, while the other servers still have
// the job's versions. Their hellos say so: `since` is the generation of what they have, and server
// 1 must have the replica of server 0's chunks. So the decision needs the hellos of all servers.
bool Recovery::Decide(const std::vector<ServerMember>& servers, StepContext* context) {
  const uint32_t since = servers[1].hello.since();
  for (size_t i = 1; i < servers.size(); ++i) {
    if (servers[i].peer.empty()) return false;
  }
  const bool all_there =
      since > 0 && servers[1].hello.holds_replica() &&
      std::all_of(servers.begin() + 1, servers.end(),
                  [&](const ServerMember& server) { return server.hello.since() == since; });
  undecided_ = generation_.choosing = false;
  if (!all_there) {
    context->Do(WentBackAction{restored_ ? generation_.start_version : -1,
                               restored_ ? restored_->progress().samples() : -1,
                               "the servers have no later version in memory"});
    return false;
  }
  LOG(WARNING) << "takes the place of a server 0 that died: the other processes go on";
  generation_.since = since;
  return true;
}

void Recovery::GoBack(const std::string& why, int64_t newest, StepContext* context) {
  LOG(WARNING) << why << ": the job goes back to its last checkpoint";
  generation_.since = ++generation_.number;
  generation_.choosing = true;
  went_back_why_ = why;
  context->Do(ChooseCheckpointAction{generation_.number, newest});
}

void Recovery::GoOn(StepContext* context) {
  ++generation_.number;
  generation_.choosing = true;
  context->Do(ReserveGenerationAction{generation_.number});
}

Status Recovery::OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen,
                          StepContext* context) {
  generation_.choosing = false;
  if (!chosen.ok()) return chosen.status().WithContext(went_back_why_);
  StartFrom(*chosen);
  const std::string where = restored_ ? "round " + std::to_string(generation_.start_version)
                                      : "its beginning, as there is no checkpoint yet";
  LOG(WARNING) << "generation " << generation_.number << " goes back to " << where << ": "
               << went_back_why_;
  context->Do(WentBackAction{generation_.start_version,
                             restored_ ? restored_->progress().samples() : 0, went_back_why_});
  return OkStatus();
}

std::string Recovery::WaitsFor() const {
  return generation_.since == generation_.number ? "the checkpoint to go back to" : "the disk";
}

// --- Start gate.

StartGate::StartGate(const Experiment::Cluster& cluster, TimeUs grace, TimeUs now)
    : workers_(std::max(cluster.workers, cluster.min_workers)),
      min_workers_(cluster.min_workers),
      join_timeout_(FromSeconds(cluster.join_timeout_s)),
      stall_timeout_(FromSeconds(cluster.stall_timeout_s)),
      grace_(grace),
      since_(now),
      enough_at_(now) {}

std::string StartGate::WaitsFor(JobPhase phase, const Recovery& recovery,
                                const MembershipTracker& membership, bool knows_spec,
                                TimeUs now) const {
  if (IsOver(phase)) return "";
  if (recovery.undecided()) return membership.members().WaitsForServers(now, false);
  if (recovery.generation().choosing) return recovery.WaitsFor();
  const bool beginning = phase == JobPhase::kWaiting && !recovery.went_back();
  return membership.WaitsFor(now, knows_spec, beginning ? workers_ : min_workers_);
}

// In the first generation of an output folder no server has versions. Half of the grace period
// remains for the checkpoint.
bool StartGate::MayGoOn(const Recovery& recovery, TimeUs now) {
  if (!recovery.undecided() || recovery.generation().number == 1) return false;
  if (!stop_at_) stop_at_ = now;
  return now - *stop_at_ <= grace_ / 2;
}

// enough_at_ moves on with every tick that finds enough workers, so the failure needs a whole limit
// without enough of them; `late` counts from the beginning of the wait.
std::optional<Status> StartGate::Tick(const Recovery& recovery, const MembershipTracker& membership,
                                      bool knows_spec, bool stop, TimeUs now) {
  const bool beginning = !recovery.went_back();
  const TimeUs limit = beginning ? join_timeout_ : stall_timeout_;
  const std::string missing = WaitsFor(JobPhase::kWaiting, recovery, membership, knows_spec, now);
  const bool late = now - since_ > limit;
  const bool enough =
      membership.members().ServersAreReady() && membership.CountTakers() >= min_workers_;
  if (enough) enough_at_ = now;
  if (knows_spec && (missing.empty() || (beginning && late && enough))) {
    LOG_IF(WARNING, late) << "training begins without " << missing;
    return OkStatus();
  }
  if (stop && MayGoOn(recovery, now)) return std::nullopt;
  if (stop && beginning) return Unavailable("stopped before the training began");
  if (stop && !enough) {
    return Unavailable(
        "stopped after the job went back; start it again to go on from its newest checkpoint");
  }
  if (now - enough_at_ > limit) {
    return Unavailable("waited " + InWholeSeconds(limit) + " for " + missing);
  }
  return std::nullopt;
}

// --- Ending.

void Ending::Direct(int64_t version, const JobPlan& plan, Directive* directive, Saving* saving,
                    MembershipTracker* membership, TimeUs now) {
  directive->stop = stop_.Direct(plan.RoundsFrom(version).end, plan.rounds());
  const bool wanted = directive->stop || directive->move;
  directive->save = saving->Direct(plan, version, wanted, membership, now);
}

// For how long the job's last version is retried.
TimeUs Ending::SaveLimit(int64_t version) const {
  return version == stop_.version() ? grace_ : stall_timeout_;
}

Effects Ending::OnSaveFailed(int64_t version, const std::string& why, int64_t rounds,
                             Saving* saving, TimeUs now) {
  saving->Failed(version, why, now);
  if (why_) {
    save_again_at_ = now + kSaveAgain;
    return {};
  }
  if (version != stop_.LastOf(rounds) || saving->TryAgain(version, SaveLimit(version), now)) {
    return {};
  }
  return Failure(Unavailable("the last checkpoint could not be saved: " + why));
}

// A checkpoint is complete. If the job was to fail once its state is saved (why_), it fails now,
// and the message says which round a new start goes on from.
Effects Ending::OnCommitted(int64_t version, const Status& status, int64_t rounds, Saving* saving,
                            TimeUs now) {
  if (!status.ok()) return OnSaveFailed(version, status.message(), rounds, saving, now);
  saving->Committed(version);
  if (!why_ || version != saving->checkpoints().order().version) return {};
  return Failure(Status(why_->code(), why_->message() + "; round " + std::to_string(version) +
                                          " is saved: start the job again to go on from there"));
}

Effects Ending::Begin(Status why, int64_t version, bool incomplete, const Checkpoints& checkpoints,
                      TimeUs now) {
  if (incomplete || version <= std::max<int64_t>(checkpoints.last(), 0) ||
      checkpoints.Has(version)) {
    return Failure(std::move(why));
  }
  LOG(ERROR) << why.message();
  why_ = std::move(why);
  by_ = now + grace_;
  return {.save = Effects::Save::kPartial};
}

std::optional<Effects> Ending::Tick(int64_t version, const Saving& saving, TimeUs now) const {
  const LastSave& last = saving.last_save();
  if (why_) {
    if (now > by_) return Failure(*why_);
    // The last order failed: contributions of a last block were on their way, or the disk failed.
    const bool again = !saving.checkpoints().Has(version) && now >= save_again_at_;
    return again ? Effects{.save = Effects::Save::kPartial} : Effects();
  }
  if (!last.Insists(version)) return std::nullopt;
  if (last.IsDueAgain(version, now)) return Effects{.save = Effects::Save::kWhole};
  if (!last.IsHopeless(now)) return Effects();
  return Failure(
      Unavailable("the last checkpoint could not be saved: not all servers have answered"));
}

// `done` needs three things, in any order: all rounds closed, the last version saved, and the last
// epoch evaluated. A stopped job needs only the checkpoint: it evaluates after its next start.
bool Ending::HasEnded(int64_t version, int64_t rounds, bool evaluated,
                      const Checkpoints& checkpoints) {
  const bool done = version == rounds && checkpoints.last() == rounds && evaluated;
  if (done) stop_.Forget();
  return done || stop_.IsReachedBy(checkpoints.last());
}

void Ending::TakeOver(int64_t version, const wire::CoordinatorState& state, int64_t rounds,
                      Saving* saving) {
  if (state.stop_at() >= version) stop_.StopAt(state.stop_at());
  saving->TakeOver({state.save_at().begin(), state.save_at().end()});
  // Files that the other servers have saved of it are of a generation that is over.
  const int64_t last = stop_.LastOf(rounds);
  const bool was_ordered = last == version || saving->directed().contains(last);
  if (was_ordered && saving->checkpoints().last() < last) saving->OrderLater(last, SaveLimit(last));
}

void Ending::LoseSnapshots(int64_t rounds, Saving* saving) {
  const int64_t last = stop_.LastOf(rounds);
  saving->LoseSnapshots(last, SaveLimit(last));
}

// --- Shutdown.

void Shutdown::OnFinished(TimeUs now) { until_ = now + limit_; }

void Shutdown::WaitFor(int others, TimeUs until) {
  others_ = others;
  until_ = until;
}

void Shutdown::OnBye() { others_ = std::max(others_ - 1, 0); }

bool Shutdown::IsOver(const MemberTable& members, TimeUs now) {
  if (until_ == 0) until_ = now + limit_;
  return AllKnow(members) || now >= until_;
}

Status Shutdown::Outcome(JobPhase phase, const StopPoint& stop) const {
  if (phase == JobPhase::kFailed) return failure_;
  if (stop.version() < 0 || stop.finishes()) return OkStatus();
  return Unavailable("stopped after round " + std::to_string(stop.version()) +
                     ", which is saved: start the job again to go on from there");
}

void Shutdown::FillIn(JobPhase phase, const StopPoint& stop, int64_t version,
                      wire::Header* header) const {
  if (phase == JobPhase::kFailed) {
    header->mutable_refusal()->set_code(static_cast<uint32_t>(failure_.code()));
    header->mutable_refusal()->set_reason(failure_.message());
  }
  wire::Orders* orders = header->mutable_orders();
  orders->set_finished(phase == JobPhase::kFinished);
  orders->set_stopped(phase == JobPhase::kFinished && stop.version() >= 0 && !stop.finishes());
  // For workers that join now: the directive with the stop was sent with the version before. Orders
  // do not name the stop earlier: if server 0 died before that version was kept twice, its
  // successor would not know of the stop, but workers would.
  if (stop.IsReachedBy(version)) orders->set_stop_at(stop.version());
}

}  // namespace kumo
