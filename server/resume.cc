#include "server/resume.h"

#include <charconv>
#include <cstdint>

#include "common/checkpoint/checkpoint.h"
#include "common/options/experiment_text.h"

namespace kumo {
namespace {

constexpr char kStartAnew[] =
    "choose another output.directory, or start anew with checkpoint.resume=never";

std::string Offer(FileSystem& files, const std::string& folder) {
  const Result<VerifiedCheckpoint> good = NewestVerified(files, folder);
  if (!good.ok()) return std::string("none of the checkpoints is good; ") + kStartAnew;
  return "the last good one is of round " + std::to_string(good->manifest.version()) +
         ": go on from it with checkpoint.resume=" + std::to_string(good->manifest.version());
}

Result<checkpoint::Manifest> Verified(FileSystem& files, const std::string& folder,
                                      const std::string& name, const Experiment& experiment) {
  const Result<checkpoint::Manifest> manifest = VerifyCheckpoint(files, folder, name);
  if (!manifest.ok()) {
    return FailedPrecondition("checkpoint " + name + " cannot be used: " +
                              manifest.status().message() + "; " + Offer(files, folder));
  }
  // The network is compared when a worker has brought its tensors.
  const Status same = CheckSameJob(*manifest, ExperimentHash(experiment),
                                   ExperimentText(experiment), manifest->fingerprint());
  if (!same.ok()) {
    return FailedPrecondition("checkpoint " + name + " in " + folder + ": " + same.message() +
                              "; " + kStartAnew);
  }
  checkpoint::Manifest usable = *manifest;
  usable.set_name(name);
  return usable;
}

}  // namespace

Result<std::optional<checkpoint::Manifest>> FindCheckpointToResume(FileSystem& files,
                                                                   const Experiment& experiment) {
  const std::string& resume = experiment.checkpoint.resume;
  const std::string folder = JoinPath(experiment.output.directory, "checkpoints");
  if (resume == "never") return std::optional<checkpoint::Manifest>();

  std::string name;
  int64_t round = 0;
  const auto parsed = std::from_chars(resume.data(), resume.data() + resume.size(), round);
  if (parsed.ec == std::errc() && parsed.ptr == resume.data() + resume.size()) {
    name = CheckpointName(round);
  } else {
    const Result<std::string> latest = FindLatest(files, folder);
    if (latest.ok()) {
      name = *latest;
    } else if (latest.status().code() != StatusCode::kNotFound) {
      return latest.status();
    } else if (resume == "must") {
      return FailedPrecondition("checkpoint.resume=must, and " + latest.status().message());
    } else {
      return std::optional<checkpoint::Manifest>();
    }
  }
  KUMO_ASSIGN_OR_RETURN(checkpoint::Manifest manifest, Verified(files, folder, name, experiment));
  return std::optional<checkpoint::Manifest>(std::move(manifest));
}

}  // namespace kumo
