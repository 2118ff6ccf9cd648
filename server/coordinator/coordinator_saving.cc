// The coordinator's part in saving and ending: when a checkpoint is taken, and what the job ends
// with.
#include <algorithm>

#include <glog/logging.h>

#include "common/job/checkpoint/origin.h"
#include "common/job/checkpoint/tensor_list.h"
#include "server/coordinator/coordinator.h"

namespace kumo {
namespace {

// How long server 0 keeps telling the others that the job is over before it leaves without their
// goodbye.
constexpr TimeUs kFarewell = 3 * kSecond;
// The pause between attempts to save what a job that cannot go on has learnt.
constexpr TimeUs kSaveAgain = 200 * kMillisecond;

}  // namespace

// What the round that starts from a version is to do.
Directive Coordinator::Direct(int64_t version, TimeUs now) {
  Directive directive;
  if (version >= LastVersion()) return directive;
  // The directive is about the round that starts now, which ends with version + 1.
  directive.stop = stop_requested_ && stop_at_ < 0 && version + 1 < plan_->rounds();
  if (directive.stop) stop_at_ = version + 1;
  if (!checkpoints_.IsBehind(version + 1) && SpreadIsDue(now)) spread_at_ = version + 1;
  directive.move = spread_at_ == version + 1;
  directive.save = SaveIsDue(version, now) || directive.stop || directive.move;
  if (directive.save) checkpoints_.Begin(version + 1, now);
  return directive;
}

bool Coordinator::SaveIsDue(int64_t version, TimeUs now) {
  const int64_t next = version + 1;
  if (next == plan_->rounds()) return true;
  if (checkpoints_.IsBehind(next)) return false;
  bool leaves = false;
  for (ServerMember& server : members_.servers) {
    const bool saved = server.leaves_at >= 0 && checkpoints_.last() >= server.leaves_at;
    if (!server.report.leaving() || saved || checkpoints_.Has(server.leaves_at)) continue;
    server.leaves_at = next;
    leaves = true;
  }
  return leaves || checkpoints_.IsDue(*plan_, next, now);
}

checkpoint::Progress Coordinator::Progress(TimeUs now) const {
  checkpoint::Progress progress = ledger_.progress();
  progress.set_elapsed_seconds(ElapsedSeconds(now));
  return progress;
}

int Coordinator::ServersWithChunks() const {
  int count = 0;
  for (int s = 0; s < map_->servers(); ++s) count += map_->FirstChunk(s) < map_->FirstChunk(s + 1);
  return count;
}

Status Coordinator::OnSaved(int server, const wire::Header& header, TimeUs now,
                            ServerActions* actions) {
  if (server > 0) actions->push_back(Acknowledgement(members_.servers[server].peer, header));
  const int64_t version = header.round();
  if (!checkpoints_.Awaits(version, header.attempt())) return OkStatus();
  const wire::SavedFile& saved = header.saved_file();
  if (!saved.failure().empty()) {
    OnSaveFailed(version, "server " + std::to_string(server) + ": " + saved.failure(), now,
                 actions);
    return OkStatus();
  }
  checkpoint::File file;
  file.set_name(saved.name());
  file.set_bytes(saved.bytes());
  file.set_crc32c(saved.crc32c());
  auto manifest = checkpoints_.Add(version, server, file, ServersWithChunks());
  if (!manifest) return OkStatus();
  manifest->set_job_name(identity_.job_name);
  manifest->set_experiment_hash(identity_.experiment_hash);
  manifest->set_experiment_text(identity_.experiment_text);
  manifest->set_fingerprint(spec_.layout.fingerprint());
  manifest->set_generation(generation_);
  manifest->set_train_samples(spec_.train_samples);
  manifest->set_validation_samples(spec_.validation_samples);
  SetTensors(spec_.layout, &*manifest);
  if (restored_) *manifest->mutable_continuations() = restored_->continuations();
  if (origin_) *manifest->mutable_origin() = *origin_;
  const int epoch = plan_->EvaluatedEpoch(version);
  if (epoch >= 0 && spec_.validation_samples > 0) {
    manifest->mutable_evaluation()->set_epoch(epoch + 1);
  }
  actions->push_back(CommitAction{*std::move(manifest)});
  return OkStatus();
}

void Coordinator::OnCommitted(int64_t version, const Status& status, TimeUs now,
                              ServerActions* actions) {
  if (!status.ok()) {
    OnSaveFailed(version, status.message(), now, actions);
    return;
  }
  checkpoints_.Committed(version);
  LOG(INFO) << "checkpoint of round " << version << " is complete";
  FinishIfDone(now, actions);
  if (ending_ && version == save_order().version) {
    Fail(Status(ending_->code(), ending_->message() + "; round " + std::to_string(version) +
                                     " is saved: start the job again to go on from there"),
         actions);
  }
}

void Coordinator::OnOrigin(const checkpoint::Origin& origin, ServerActions* actions) {
  if (origin_ || version_ > 0 || start_version_ > 0) return;
  origin_ = Excerpt(origin);
  actions->push_back(StartedFromAction{*origin_});
}

// The manifest may be written already, or be that of the checkpoint which the job goes on from.
void Coordinator::KeepEvaluation(const EpochLedger::Epoch& epoch, int64_t version,
                                 ServerActions* actions) {
  checkpoint::Evaluation evaluation;
  evaluation.set_epoch(epoch.epoch + 1);
  evaluation.set_samples(epoch.validation.samples());
  evaluation.set_loss_sum(epoch.validation.loss_sum());
  evaluation.set_correct(epoch.validation.correct());
  checkpoints_.SetEvaluation(version, evaluation);
  // One of an earlier generation is of a past that the job went back from.
  const uint32_t since = version == start_version_ ? 0 : since_;
  actions->push_back(KeepEvaluationAction{version, since, evaluation});
}

int64_t Coordinator::LastVersion() const { return stop_at_ >= 0 ? stop_at_ : plan_->rounds(); }

// How long the version that the job ends with is tried to be saved.
TimeUs Coordinator::SaveLimit(int64_t version) const {
  return FromSeconds(version == stop_at_ ? experiment_.checkpoint.grace_s
                                         : experiment_.cluster.stall_timeout_s);
}

// Training goes on without that checkpoint; only the last one is worth waiting for the disk.
void Coordinator::OnSaveFailed(int64_t version, const std::string& why, TimeUs now,
                               ServerActions* actions) {
  checkpoints_.Failed(version);
  LOG(ERROR) << "checkpoint of round " << version << " failed: " << why
             << "; the last good one is of round " << checkpoints_.last();
  if (ending_) {
    save_again_at_ = now + kSaveAgain;
  } else if (version == LastVersion()) {
    if (checkpoints_.TryAgain(version, SaveLimit(version), now)) return;
    Fail(Unavailable("the last checkpoint could not be saved: " + why), actions);
  }
}

// The job cannot go on. What has been learnt since the last checkpoint is saved first, unless a
// part of it is missing.
void Coordinator::EndWith(Status status, TimeUs now, ServerActions* actions) {
  if (ending_) return;
  if (!first_loss_.empty()) {
    status = Status(status.code(), status.message() + "; the first to be lost was " + first_loss_);
  }
  if (LossTakesBack() || version_ <= std::max<int64_t>(checkpoints_.last(), 0) ||
      checkpoints_.Has(version_)) {
    Fail(std::move(status), actions);
    return;
  }
  LOG(ERROR) << status.message();
  ending_ = std::move(status);
  ending_by_ = now + FromSeconds(experiment_.checkpoint.grace_s);
  checkpoints_.OrderNow(version_, /*partial=*/true, Progress(now), now);
  SendOrdersToAll(actions);
}

void Coordinator::FinishIfDone(TimeUs now, ServerActions* actions) {
  if (phase_ != Phase::kTraining) return;
  const bool stopped = stop_at_ >= 0 && checkpoints_.last() >= stop_at_;
  const bool done = plan_ && version_ == plan_->rounds() &&
                    checkpoints_.last() == plan_->rounds() && ledger_.complete();
  if (!stopped && !done) return;
  if (done) stop_at_ = -1;
  phase_ = Phase::kFinished;
  over_since_ = now;
  SendOrdersToAll(actions);
}

void Coordinator::Fail(Status status, ServerActions* actions) {
  if (Over()) return;
  LOG(ERROR) << status.message();
  phase_ = Phase::kFailed;
  failure_ = std::move(status);
  SendOrdersToAll(actions);
}

void Coordinator::RequestStop() { stop_requested_ = true; }

// Server 0 leaves when everybody has said goodbye, which they do when they know of the end; whoever
// has not is told again. Who has died, or whose goodbye is lost, is waited for in vain, for a
// while.
void Coordinator::TickOver(TimeUs now, ServerActions* actions) {
  if (over_since_ == 0) over_since_ = now;
  if (members_.AllHaveLeft() || now - over_since_ >= kFarewell) {
    Exit(actions);
  } else {
    SendOrdersToAll(actions);
  }
}

void Coordinator::Exit(ServerActions* actions) const {
  if (phase_ == Phase::kFailed) {
    actions->push_back(ExitAction{failure_});
  } else if (stop_at_ >= 0) {
    actions->push_back(
        ExitAction{Unavailable("stopped after round " + std::to_string(stop_at_) +
                               ", which is saved: start the job again to go on from there")});
  } else {
    actions->push_back(ExitAction{OkStatus()});
  }
}

}  // namespace kumo
