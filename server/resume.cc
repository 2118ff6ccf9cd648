#include "server/resume.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include <glog/logging.h>

#include "common/checkpoint/checkpoint.h"
#include "common/options/experiment_text.h"

namespace kumo {
namespace {

constexpr char kStartAnew[] =
    "choose another output.directory, or start anew with checkpoint.resume=never";
constexpr int64_t kAnyVersion = std::numeric_limits<int64_t>::max();

std::string Folder(const Experiment& experiment) {
  return JoinPath(experiment.output.directory, "checkpoints");
}

std::string GenerationFile(const Experiment& experiment) {
  return JoinPath(experiment.output.directory, "generation");
}

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string Offer(FileSystem& files, const std::string& folder) {
  const Result<VerifiedCheckpoint> good = NewestVerified(files, folder);
  if (!good.ok()) return std::string("none of the checkpoints is good; ") + kStartAnew;
  return "the last good one is of round " + std::to_string(good->manifest.version()) +
         ": go on from it with checkpoint.resume=" + std::to_string(good->manifest.version());
}

// The network is compared when a worker has brought its tensors.
Status CheckExperiment(const checkpoint::Manifest& manifest, const std::string& folder,
                       const Experiment& experiment) {
  const Status same = CheckSameJob(manifest, ExperimentHash(experiment), ExperimentText(experiment),
                                   manifest.fingerprint());
  if (same.ok()) return OkStatus();
  return FailedPrecondition("checkpoint " + manifest.name() + " in " + folder + ": " +
                            same.message() + "; " + kStartAnew);
}

// The newest good checkpoint of a round up to `newest`; none where there is none at all.
Result<ResumePoint> Newest(FileSystem& files, const Experiment& experiment, int64_t newest) {
  const std::string folder = Folder(experiment);
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListCheckpoints(files, folder));
  std::erase_if(names, [&](const std::string& name) {
    return newest < kAnyVersion && name > CheckpointName(newest);
  });
  ResumePoint point;
  for (const std::string& name : names) {
    Result<checkpoint::Manifest> manifest = VerifyCheckpoint(files, folder, name);
    if (!manifest.ok()) {
      // What may be good, and only cannot be read just now, is not passed over: it would be
      // deleted.
      const StatusCode code = manifest.status().code();
      if (code == StatusCode::kUnavailable || code == StatusCode::kResourceExhausted) {
        return manifest.status().WithContext("checkpoint " + name);
      }
      point.skipped.push_back(name + ": " + manifest.status().message());
      continue;
    }
    manifest->set_name(name);
    KUMO_RETURN_IF_ERROR(CheckExperiment(*manifest, folder, experiment));
    point.manifest = *std::move(manifest);
    return point;
  }
  if (names.empty()) return point;
  return FailedPrecondition("none of the checkpoints in " + folder +
                            " is good: " + point.skipped.front() + "; " + kStartAnew);
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
  KUMO_RETURN_IF_ERROR(CheckExperiment(*manifest, folder, experiment));
  return ResumePoint{*std::move(manifest), {}};
}

// The last generation that was reserved; 0 where there is none that can be read.
uint32_t LastGeneration(FileSystem& files, const Experiment& experiment) {
  constexpr uint64_t kLongest = 64;
  const Result<std::string> text = ReadWholeFile(files, GenerationFile(experiment), kLongest);
  if (!text.ok()) return 0;
  return ParseNumber<uint32_t>(text->substr(0, text->find('\n'))).value_or(0);
}

Status WriteGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation) {
  return WriteFileAtomically(files, GenerationFile(experiment), std::to_string(generation) + "\n");
}

}  // namespace

Result<ResumePoint> FindCheckpointToResume(FileSystem& files, const Experiment& experiment) {
  const std::string& resume = experiment.checkpoint.resume;
  if (resume == "never") return ResumePoint();
  if (const auto round = ParseNumber<int64_t>(resume)) return Named(files, experiment, *round);
  KUMO_ASSIGN_OR_RETURN(ResumePoint point, Newest(files, experiment, kAnyVersion));
  if (!point.manifest && resume == "must") {
    return FailedPrecondition("checkpoint.resume=must, and there is no checkpoint in " +
                              Folder(experiment));
  }
  return point;
}

Result<uint32_t> ReserveGeneration(FileSystem& files, const Experiment& experiment,
                                   uint32_t at_least) {
  const uint32_t generation = std::max(LastGeneration(files, experiment), at_least) + 1;
  KUMO_RETURN_IF_ERROR(WriteGeneration(files, experiment, generation));
  return generation;
}

void KeepGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation) {
  if (Status status = WriteGeneration(files, experiment, generation); !status.ok()) {
    LOG(WARNING) << status.message()
                 << "; should server 0 be started again, old messages may confuse it";
  }
}

Result<std::optional<checkpoint::Manifest>> ChooseCheckpoint(FileSystem& files,
                                                             const Experiment& experiment,
                                                             uint32_t generation, int64_t newest) {
  KeepGeneration(files, experiment, generation);
  KUMO_ASSIGN_OR_RETURN(ResumePoint point, Newest(files, experiment, newest));
  for (const std::string& skipped : point.skipped) LOG(ERROR) << "passes over " << skipped;
  return std::move(point.manifest);
}

}  // namespace kumo
