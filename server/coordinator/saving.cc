#include "server/coordinator/saving.h"

#include <cstddef>
#include <utility>

#include <glog/logging.h>

#include "common/base/printable.h"

namespace kumo {
namespace {

constexpr size_t kLongestFailure = 1000;

}  // namespace

bool Saving::Direct(const JobPlan& plan, int64_t next, bool wanted, MembershipTracker* membership,
                    TimeUs now) {
  bool save = next == plan.rounds();
  if (!save && !checkpoints_.IsBehind(next)) {
    const bool leaves = membership->LetServersLeaveAt(next, checkpoints_);
    save = leaves || schedule_.IsDue(plan, next, now);
  }
  if (!save && !wanted) return false;
  checkpoints_.Begin(next);
  schedule_.CountFrom(now);
  return true;
}

void Saving::SetProgress(int64_t version, const checkpoint::Progress& progress) {
  checkpoints_.SetProgress(version, progress);
}

void Saving::OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress,
                      TimeUs now) {
  checkpoints_.OrderNow(version, partial, progress);
  last_save_.OnOrdered(version, now);
  schedule_.CountFrom(now);
}

Status Saving::OnSaved(int server, const wire::Header& header, const Manifests& manifests,
                       const Recovery& recovery, const std::optional<JobPlan>& plan,
                       StepContext* context) {
  const bool awaited = checkpoints_.Awaits(header.round(), header.attempt());
  if (!awaited || !manifests.holders().contains(server)) return OkStatus();
  const wire::SavedFile& saved = header.saved_file();
  if (!saved.failure().empty()) {
    return Unavailable("server " + std::to_string(server) + ": " +
                       Printable(saved.failure(), kLongestFailure));
  }
  const uint32_t generation = recovery.generation().number;
  auto manifest =
      checkpoints_.Add(header.round(), server, manifests.FileOf(server, generation, saved),
                       static_cast<int>(manifests.holders().size()));
  if (!manifest) return OkStatus();
  manifests.Complete(generation, recovery.restored(), *plan, &*manifest);
  context->Do(CommitAction{*std::move(manifest)});
  return OkStatus();
}

void Saving::Committed(int64_t version) {
  checkpoints_.Committed(version);
  last_save_.OnSaved(version);
  LOG(INFO) << "checkpoint of round " << version << " is complete";
}

// Training goes on without that checkpoint; only the last one is worth waiting for the disk.
void Saving::Failed(int64_t version, const std::string& why) {
  checkpoints_.Failed(version);
  LOG(ERROR) << "checkpoint of round " << version << " failed: " << why
             << "; the last good one is of round " << checkpoints_.last();
}

// The manifest may be written already, or be that of the checkpoint which the job goes on from.
void Saving::KeepEvaluation(const EpochLedger::Epoch& epoch, int64_t version,
                            const Generation& generation, StepContext* context) {
  checkpoint::Evaluation evaluation;
  evaluation.set_epoch(epoch.epoch + 1);
  WriteSums(epoch.validation, evaluation.mutable_sums());
  checkpoints_.SetEvaluation(version, evaluation);
  // One of an earlier generation is of a past that the job went back from.
  const uint32_t since = version == generation.start_version ? 0 : generation.since;
  ++being_kept_;
  context->Do(KeepEvaluationAction{version, since, evaluation});
}

void Saving::LoseSnapshots(int64_t last, TimeUs limit) {
  if (checkpoints_.Has(last)) last_save_.OrderLater(last, limit);
  checkpoints_.FailAll();
}

void Saving::GoBack(int64_t last, TimeUs now) {
  checkpoints_.GoBack(last);
  last_save_.Forget();
  schedule_.CountFrom(now);
}

void Saving::FillIn(const ServerMember& server, wire::Orders* orders) const {
  const SaveOrder& order = checkpoints_.order();
  orders->set_save_version(order.version);
  orders->set_save_attempt(order.attempt);
  orders->set_save_partial(order.partial);
  if (checkpoints_.last() >= 0) orders->set_complete(checkpoints_.last());
  orders->set_released(server.leaves_at >= 0 && checkpoints_.last() >= server.leaves_at);
}

}  // namespace kumo
