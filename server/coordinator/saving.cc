#include "server/coordinator/saving.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/health.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/network_and_data.h"
#include "common/checkpoint/origin.h"

namespace kumo {
namespace {

constexpr int64_t kBehind = 2;  // checkpoints that are being written
constexpr TimeUs kRetryPause = 5 * kSecond;
constexpr TimeUs kPauseAfterFailure = 30 * kSecond;  // before a later version is saved
constexpr size_t kLongestFailure = 1000;

}  // namespace

bool IsSaveDue(const Experiment::CheckpointOptions& options, const JobPlan& plan, Range rounds,
               TimeUs since, TimeUs now) {
  const RoundPlan last = plan.Round(rounds.end - 1);
  const bool by_epochs =
      options.every_epochs > 0 && last.ends_epoch && (last.epoch + 1) % options.every_epochs == 0;
  // The best checkpoint is not known yet: save every version that will be evaluated.
  const bool may_be_best = !options.best.empty() && plan.EvaluatedEpoch(rounds.end) >= 0;
  const bool by_rounds = options.every_rounds > 0 &&
                         rounds.end / options.every_rounds > rounds.begin / options.every_rounds;
  const bool by_time =
      options.every_minutes > 0 && static_cast<double>(now - since) >= options.every_minutes * 60e6;
  return by_rounds || by_epochs || may_be_best || by_time;
}

// --- Checkpoints under way.

void Checkpoints::GoBack(int64_t last) {
  last_ = last;
  evaluations_.clear();
  FailAll();
}

void Checkpoints::FailAll() {
  under_way_.clear();
  order_.version = -1;
}

void Checkpoints::SetProgress(int64_t version, const checkpoint::Progress& progress) {
  const auto found = under_way_.find(version);
  if (found != under_way_.end()) found->second.progress = progress;
}

// Evaluations of older versions are dropped, except of those under way: their manifests still need
// them.
void Checkpoints::SetEvaluation(int64_t version, const checkpoint::Evaluation& evaluation) {
  evaluations_[version] = evaluation;
  std::erase_if(evaluations_, [&](const auto& entry) {
    return entry.first < version && !under_way_.contains(entry.first);
  });
}

void Checkpoints::OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress) {
  order_ = {version, order_.attempt + 1, partial};
  under_way_[version] = {order_.attempt, {}, progress, false};
}

bool Checkpoints::Awaits(int64_t version, int attempt) const {
  const auto found = under_way_.find(version);
  return found != under_way_.end() && found->second.attempt == attempt && !found->second.committing;
}

std::optional<checkpoint::Manifest> Checkpoints::Add(int64_t version, int server,
                                                     const checkpoint::File& file, int wanted) {
  const auto found = under_way_.find(version);
  if (found == under_way_.end()) return std::nullopt;
  UnderWay& checkpoint = found->second;
  checkpoint.files[server] = file;
  if (static_cast<int>(checkpoint.files.size()) < wanted) return std::nullopt;
  checkpoint.committing = true;
  // Older versions are given up, but for those whose manifest is being written.
  std::erase_if(under_way_, [&](const auto& entry) {
    return entry.first < version && !entry.second.committing;
  });
  checkpoint::Manifest manifest;
  manifest.set_version(version);
  for (const auto& [index, saved] : checkpoint.files) *manifest.add_files() = saved;
  *manifest.mutable_progress() = checkpoint.progress;
  const auto evaluation = evaluations_.find(version);
  if (evaluation != evaluations_.end()) *manifest.mutable_evaluation() = evaluation->second;
  return manifest;
}

void Checkpoints::Committed(int64_t version) {
  under_way_.erase(version);
  last_ = std::max(last_, version);
}

// --- The last save.

void LastSave::OrderLater(int64_t version, TimeUs limit) {
  version_ = version;
  limit_ = limit;
  again_at_ = 1;
  give_up_at_ = 0;
}

bool LastSave::TryAgain(int64_t version, TimeUs limit, TimeUs now) {
  if (give_up_at_ == 0) give_up_at_ = now + limit;
  if (now + kRetryPause > give_up_at_) return false;
  version_ = version;
  again_at_ = now + kRetryPause;
  return true;
}

void LastSave::OnOrdered(int64_t version, TimeUs now) {
  again_at_ = 0;
  if (version_ == version && give_up_at_ == 0) give_up_at_ = now + limit_;
}

void LastSave::OnSaved(int64_t version) {
  if (version >= version_) Forget();
}

void LastSave::Forget() {
  version_ = -1;
  again_at_ = give_up_at_ = 0;
}

bool LastSave::IsDueAgain(int64_t version, TimeUs now) const {
  return version_ == version && again_at_ > 0 && now >= again_at_;
}

bool LastSave::IsHopeless(TimeUs now) const {
  return give_up_at_ > 0 && now > give_up_at_ + kRetryPause;
}

// --- Manifests.

void Manifests::OnSpec(const ShardMap& map, const JobSpec& spec) {
  spec_ = spec;
  map_ = map;
  holders_.clear();
  for (int s = 0; s < map.servers(); ++s) {
    if (map.FirstChunk(s) < map.FirstChunk(s + 1)) holders_.insert(s);
  }
}

checkpoint::File Manifests::FileOf(int server, uint32_t generation,
                                   const wire::SavedFile& saved) const {
  checkpoint::File file;
  file.set_name(ShardFileName(static_cast<uint32_t>(server),
                              static_cast<uint32_t>(identity_.servers), generation));
  file.set_bytes(saved.bytes());
  file.set_crc32c(saved.crc32c());
  file.set_not_finite(saved.not_finite());
  if (!private_disks_) return file;
  const Range range = map_.ServerRange(server);
  file.set_begin(range.begin);
  file.set_end(range.end);
  return file;
}

void Manifests::StartFrom(const std::optional<checkpoint::Manifest>& restored) {
  origin_.reset();
  if (restored && restored->has_origin()) origin_ = restored->origin();
}

void Manifests::TakeOver(const wire::CoordinatorState& state) {
  if (state.has_origin()) origin_ = state.origin();
}

void Manifests::OnOrigin(const checkpoint::Origin& origin, StepContext* context) {
  if (origin_) return;
  origin_ = Excerpt(origin);
  context->Do(StartedFromAction{*origin_});
}

void Manifests::Complete(uint32_t generation, const std::optional<checkpoint::Manifest>& restored,
                         const JobPlan& plan, checkpoint::Manifest* manifest) const {
  manifest->set_job_name(identity_.job_name);
  manifest->set_experiment_hash(identity_.experiment_hash);
  manifest->set_experiment_text(identity_.experiment_text);
  manifest->set_fingerprint(spec_.layout.fingerprint());
  manifest->set_generation(generation);
  manifest->set_train_samples(spec_.train_samples);
  manifest->set_validation_samples(spec_.validation_samples);
  manifest->set_train_hash(spec_.train.hash);
  manifest->set_validation_hash(spec_.validation.hash);
  manifest->set_network(spec_.network);
  for (const std::string& name : spec_.class_names) manifest->add_class_names(name);
  manifest->mutable_mean_image()->Add(spec_.mean_image.begin(), spec_.mean_image.end());
  SetTensors(spec_.layout, manifest);
  WriteMetrics(spec_.metrics, manifest->mutable_metrics());
  if (restored) {
    *manifest->mutable_continuations() = restored->continuations();
    NoteChangesOfNetworkAndData(*restored, spec_, plan, manifest);
  }
  manifest->set_diverged(DivergenceOf(*manifest, spec_.metrics));
  if (origin_) *manifest->mutable_origin() = *origin_;
  const int epoch = plan.EvaluatedEpoch(manifest->version());
  if (epoch >= 0 && spec_.validation_samples > 0) {
    manifest->mutable_evaluation()->set_epoch(epoch + 1);
  }
}

// --- Saving.

// The last version is always saved, also if the disk is behind, and so is a version at which the
// job stops or leases move (wanted; no move is decided while the disk is behind). Settings and
// leaving servers wait until the disk has caught up.
bool Saving::IsBehind() const { return checkpoints_.count() - std::ssize(directed_) >= kBehind; }

bool Saving::Direct(const JobPlan& plan, int64_t version, bool wanted,
                    MembershipTracker* membership, TimeUs now) {
  const Range rounds = plan.RoundsFrom(version);
  const int64_t next = rounds.end;
  bool save = next == plan.rounds();
  const bool due =
      IsSaveDue(options_, plan, rounds, since_, now) || (failures_ > 0 && now >= retry_at_);
  if (!save && !IsBehind()) {
    const bool leaves = membership->LetServersLeaveAt(
        next, [this](int64_t leaves_at) { return checkpoints_.Secures(leaves_at); });
    save = leaves || due;
  }
  if (due && !save && !wanted) {
    LOG_EVERY_T(WARNING, 60) << "no checkpoint of round " << next
                             << ": the disk is still writing earlier ones; save less often "
                                "(checkpoint.every_...) or use a faster disk";
  }
  if (!save && !wanted) return false;
  if (failures_ > 0)
    retry_at_ = now + kPauseAfterFailure;  // until it is known whether this one fails
  checkpoints_.Begin(next);
  directed_.insert(next);
  CountFrom(now);
  return true;
}

void Saving::OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress,
                      TimeUs now) {
  checkpoints_.OrderNow(version, partial, progress);
  last_save_.OnOrdered(version, now);
  CountFrom(now);
}

Status Saving::OnSaved(int server, const wire::Header& header, const Manifests& manifests,
                       const Generation& generation,
                       const std::optional<checkpoint::Manifest>& restored,
                       const std::optional<JobPlan>& plan, StepContext* context) {
  const bool awaited = checkpoints_.Awaits(header.round(), header.attempt());
  if (!awaited || !manifests.holders().contains(server)) return OkStatus();
  const wire::SavedFile& saved = header.saved_file();
  if (!saved.failure().empty()) {
    return Unavailable("server " + std::to_string(server) + ": " +
                       Printable(saved.failure(), kLongestFailure));
  }
  auto manifest =
      checkpoints_.Add(header.round(), server, manifests.FileOf(server, generation.number, saved),
                       static_cast<int>(manifests.holders().size()));
  if (!manifest) return OkStatus();
  manifests.Complete(generation.number, restored, *plan, &*manifest);
  context->Do(CommitAction{*std::move(manifest)});
  return OkStatus();
}

void Saving::Committed(int64_t version) {
  failure_.clear();
  failures_ = 0;
  checkpoints_.Committed(version);
  last_save_.OnSaved(version);
  LOG(INFO) << "checkpoint of round " << version << " is complete";
}

// Training goes on without the checkpoint, unless the job ends with it (Ending).
void Saving::Failed(int64_t version, const std::string& why, TimeUs now) {
  checkpoints_.Failed(version);
  failure_ = why;
  ++failures_;
  retry_at_ = now + kPauseAfterFailure;
  LOG(INFO) << "checkpoint of round " << version << " failed: " << why
            << "; the last good one is of round " << checkpoints_.last();
}

// The manifest may be written already, or may be of the checkpoint that the job goes on from.
void Saving::KeepEvaluation(const EpochLedger::Epoch& epoch, int64_t version,
                            const Generation& generation, StepContext* context) {
  checkpoint::Evaluation evaluation;
  evaluation.set_epoch(epoch.epoch + 1);
  WriteSums(epoch.validation, evaluation.mutable_sums());
  evaluation.set_trouble(epoch.trouble);
  checkpoints_.SetEvaluation(version, evaluation);
  // A manifest of an earlier generation is of rounds that the job went back from.
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
  directed_.clear();
  last_save_.Forget();
  CountFrom(now);
}

void Saving::FillIn(const ServerMember& server, wire::Orders* orders) const {
  const SaveOrder& order = checkpoints_.order();
  orders->set_save_version(order.version);
  orders->set_save_attempt(order.attempt);
  orders->set_save_partial(order.partial);
  if (checkpoints_.last() >= 0) orders->set_complete(checkpoints_.last());
  orders->set_released(server.leaves_at >= 0 && checkpoints_.last() >= server.leaves_at);
}

void Saving::Describe(wire::JobStatus* status) const {
  status->set_last_checkpoint(checkpoints_.last());
  status->set_checkpoint_failure(failure_);
  status->set_checkpoint_failures(failures_);
}

}  // namespace kumo
