#include "common/checkpoint/resume_point.h"

#include <limits>
#include <utility>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/continuation.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment_text.h"

namespace kumo {
namespace {

constexpr char kStartAnew[] =
    "choose another output.directory, or start anew with checkpoint.resume=never";
constexpr int64_t kAnyVersion = std::numeric_limits<int64_t>::max();

std::string Folder(const Experiment& experiment) {
  return JoinPath(experiment.output.directory, "checkpoints");
}

std::string Offer(FileSystem& files, const std::string& folder) {
  const Result<VerifiedCheckpoint> good = NewestVerified(files, folder);
  if (!good.ok()) return std::string("no checkpoint is valid; ") + kStartAnew;
  return "the last valid one is of round " + std::to_string(good->manifest.version()) +
         ": resume from it with checkpoint.resume=" + std::to_string(good->manifest.version());
}

// Resumes from a checkpoint, with changed settings if allowed. The network is compared later, when
// a worker has sent its tensors.
Status Take(checkpoint::Manifest manifest, const Experiment& experiment, ResumePoint* point) {
  const auto changes = SettingChanges(manifest.experiment_text(), experiment);
  if (!changes.empty()) {
    const std::string what =
        "checkpoint " + manifest.name() + " in " + Folder(experiment) + " has other settings";
    auto continuation = ContinuationOf(manifest, experiment, changes);
    const std::string list = " (" + DescribeChanges(changes) + ")";
    if (!continuation.ok()) {
      return FailedPrecondition(
          what + list + ", and --continue cannot continue with them: " +
          continuation.status().message() + "; choose another output.directory (there --from " +
          JoinPath(Folder(experiment), manifest.name()) +
          " starts from these weights), or start anew with checkpoint.resume=never");
    }
    if (!experiment.checkpoint.continues) {
      return FailedPrecondition(what + list +
                                "; continue with the current ones with kumo launch "
                                "--continue (checkpoint.continue=true), " +
                                kStartAnew);
    }
    *manifest.add_continuations() = *continuation;
    point->continuation = *std::move(continuation);
  }
  point->finished = !point->continuation && IsFinished(manifest, experiment);
  point->manifest = std::move(manifest);
  return OkStatus();
}

Result<ResumePoint> Named(FileSystem& files, const Experiment& experiment, int64_t round) {
  const std::string folder = Folder(experiment);
  const std::string name = CheckpointName(round);
  Result<checkpoint::Manifest> manifest = VerifyCheckpoint(files, folder, name);
  if (!manifest.ok()) {
    return FailedPrecondition("checkpoint " + name + " cannot be used: " +
                              manifest.status().message() + "; " + Offer(files, folder));
  }
  manifest->set_name(name);
  ResumePoint point;
  KUMO_RETURN_IF_ERROR(Take(*std::move(manifest), experiment, &point));
  return point;
}

}  // namespace

std::optional<int64_t> RoundToResume(const Experiment& experiment) {
  const ResumeFrom& from = experiment.checkpoint.resume;
  if (from.kind != ResumeFrom::Kind::kRound) return std::nullopt;
  return from.round;
}

namespace {

bool IsEndOfPatience(const checkpoint::Manifest& manifest, const JobPlan& plan,
                     const Experiment& experiment) {
  return HasEndedEarly(manifest) &&
         IsPatienceOver(manifest.progress(), plan, experiment.PatienceInEpochs(),
                        experiment.job.patience_metric);
}

}  // namespace

int64_t EarliestStop(const JobPlan& plan, int64_t evaluated) {
  int64_t told = evaluated + 1;
  while (told < plan.rounds() && plan.RoundsFrom(told).size() == 0) ++told;
  return plan.RoundsFrom(told).end;
}

bool IsPatienceOver(const checkpoint::Progress& progress, const JobPlan& plan, int patience,
                    const std::string& metric) {
  if (patience == 0 || progress.best_metric() != metric) return false;
  int64_t judged = std::min(progress.stops_at(), plan.rounds()) - 1;
  while (judged >= 1 && EarliestStop(plan, judged) > progress.stops_at()) --judged;
  if (judged < 1 || EarliestStop(plan, judged) != progress.stops_at()) return false;
  // With a delay several versions may have this stop; the one that ends an epoch was judged.
  while (judged > 1 && !plan.Round(judged - 1).ends_epoch &&
         EarliestStop(plan, judged - 1) == progress.stops_at()) {
    --judged;
  }
  return int64_t{plan.Round(judged - 1).epoch} + 1 - progress.best_epoch() >= patience;
}

bool HasEndedEarly(const checkpoint::Manifest& manifest) {
  return manifest.version() > 0 && manifest.progress().stops_at() == manifest.version();
}

bool IsFinished(const checkpoint::Manifest& manifest, const Experiment& experiment) {
  JobSpec spec;
  spec.train_samples = manifest.train_samples();
  const Result<JobPlan> plan = PlanFor(experiment, spec);
  if (plan.ok() && IsEndOfPatience(manifest, *plan, experiment)) return true;
  if (!plan.ok() || manifest.version() != plan->rounds() || !manifest.has_evaluation()) {
    return false;
  }
  return manifest.validation_samples() == 0 || manifest.evaluation().sums().samples() > 0;
}

Result<ResumePoint> NewestToResume(FileSystem& files, const Experiment& experiment,
                                   int64_t newest) {
  const std::string folder = Folder(experiment);
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListCheckpoints(files, folder));
  std::erase_if(names, [&](const std::string& name) {
    return newest < kAnyVersion && name > CheckpointName(newest);
  });
  ResumePoint point;
  for (const std::string& name : names) {
    Result<checkpoint::Manifest> manifest = VerifyCheckpoint(files, folder, name);
    if (!manifest.ok()) {
      // A checkpoint that merely cannot be read, now or by this user, is not skipped: it would be
      // deleted later.
      const StatusCode code = manifest.status().code();
      if (code != StatusCode::kDataLoss && code != StatusCode::kNotFound &&
          code != StatusCode::kInvalidArgument) {
        return manifest.status().WithContext("checkpoint " + name);
      }
      point.skipped.push_back(name + ": " + manifest.status().message());
      continue;
    }
    manifest->set_name(name);
    KUMO_RETURN_IF_ERROR(Take(*std::move(manifest), experiment, &point));
    return point;
  }
  if (names.empty()) return point;
  return FailedPrecondition("no checkpoint in " + folder + " is valid: " + point.skipped.front() +
                            "; " + kStartAnew);
}

Result<ResumePoint> FindCheckpointToResume(FileSystem& files, const Experiment& experiment) {
  const ResumeFrom& resume = experiment.checkpoint.resume;
  if (resume.never()) return ResumePoint();
  if (const auto round = RoundToResume(experiment)) return Named(files, experiment, *round);
  KUMO_ASSIGN_OR_RETURN(ResumePoint point, NewestToResume(files, experiment, kAnyVersion));
  if (!point.manifest && resume.kind == ResumeFrom::Kind::kMust) {
    return FailedPrecondition("checkpoint.resume=must, but there is no checkpoint in " +
                              Folder(experiment));
  }
  return point;
}

}  // namespace kumo
