#include "server/coordinator/ending.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

// The pause between attempts to save what a job that cannot go on has learnt.
constexpr TimeUs kSaveAgain = 200 * kMillisecond;

Effects Failure(Status status) { return {.failure = std::move(status)}; }

}  // namespace

// The directive is about the round that starts now, which ends with the next version.
void Ending::Direct(int64_t version, const JobPlan& plan, Directive* directive, Saving* saving,
                    MembershipTracker* membership, TimeUs now) {
  directive->stop = stop_.Direct(version + 1, plan.rounds());
  const bool wanted = directive->stop || directive->move;
  directive->save = saving->Direct(plan, version + 1, wanted, membership, now);
}

// How long the version that the job ends with is tried to be saved.
TimeUs Ending::SaveLimit(int64_t version) const {
  return version == stop_.version() ? grace_ : stall_timeout_;
}

Effects Ending::OnSaveFailed(int64_t version, const std::string& why, int64_t rounds,
                             Saving* saving, TimeUs now) {
  saving->Failed(version, why);
  if (why_) {
    save_again_at_ = now + kSaveAgain;
    return {};
  }
  if (version != stop_.LastOf(rounds) || saving->TryAgain(version, SaveLimit(version), now)) {
    return {};
  }
  return Failure(Unavailable("the last checkpoint could not be saved: " + why));
}

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
    // A last block's contributions were still on their way, or the disk did not take it.
    const bool again = !saving.checkpoints().Has(version) && now >= save_again_at_;
    return again ? Effects{.save = Effects::Save::kPartial} : Effects();
  }
  if (!last.Insists(version)) return std::nullopt;
  if (last.IsDueAgain(version, now)) return Effects{.save = Effects::Save::kWhole};
  if (!last.IsHopeless(now)) return Effects();
  return Failure(
      Unavailable("the last checkpoint could not be saved: not all servers have answered"));
}

bool Ending::HasEnded(int64_t version, int64_t rounds, bool evaluated,
                      const Checkpoints& checkpoints) {
  const bool done = version == rounds && checkpoints.last() == rounds && evaluated;
  if (done) stop_.Forget();
  return done || stop_.IsReachedBy(checkpoints.last());
}

void Ending::TakeOver(int64_t version, const Directive& said, int64_t rounds, Saving* saving) {
  if (said.stop || said.state->stop_at() == version) stop_.StopAt(said.state->stop_at());
  // What the others have saved of it is of a generation that is over.
  const int64_t last = stop_.LastOf(rounds);
  const bool was_ordered = last == version || (said.save && last == version + 1);
  if (was_ordered && saving->checkpoints().last() < last) saving->OrderLater(last, SaveLimit(last));
}

void Ending::LoseSnapshots(int64_t rounds, Saving* saving) {
  const int64_t last = stop_.LastOf(rounds);
  saving->LoseSnapshots(last, SaveLimit(last));
}

}  // namespace kumo
