#include "server/disks/resume.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <glog/logging.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/resume_point.h"
#include "common/job/protocol.h"

namespace kumo {
namespace {

std::string GenerationFile(const Experiment& experiment) {
  return JoinPath(experiment.output.directory, "generation");
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

Status WriteGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation) {
  return WriteFileAtomically(files, GenerationFile(experiment), std::to_string(generation) + "\n");
}

}  // namespace

uint32_t LastGeneration(FileSystem& files, const Experiment& experiment) {
  constexpr uint64_t kLongest = 64;
  const Result<std::string> text = ReadWholeFile(files, GenerationFile(experiment), kLongest);
  if (!text.ok()) return 0;
  const uint32_t number = ParseNumber(text->substr(0, text->find('\n'))).value_or(0);
  return number < kLastGeneration ? number : 0;
}

std::optional<SurveySettings> SurveyNeeded(FileSystem& files, const Experiment& experiment,
                                           const JobIdentity& identity) {
  if (!experiment.checkpoint.HasPrivateDisks() || identity.servers < 2 ||
      experiment.checkpoint.resume.never()) {
    return std::nullopt;
  }
  const std::string folder = JoinPath(experiment.output.directory, "checkpoints");
  SurveySettings settings;
  settings.identity = identity;
  settings.piece_bytes = static_cast<uint64_t>(experiment.cluster.chunk_kib) * 1024;
  settings.join_timeout = FromSeconds(experiment.cluster.join_timeout_s);
  settings.only = RoundToResume(experiment);
  if (settings.only) {
    const bool good = VerifyCheckpoint(files, folder, CheckpointName(*settings.only)).ok();
    return good ? std::nullopt : std::optional(settings);
  }
  const auto names = ListCheckpoints(files, folder);
  const auto newest = NewestVerified(files, folder);
  if (newest.ok()) settings.newer_than = newest->manifest.version();
  const bool damaged = newest.ok() ? !newest->refused.empty() : names.ok() && !names->empty();
  if (files.Exists(GenerationFile(experiment)) && !damaged) return std::nullopt;
  return settings;
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
                 << "; if server 0 is started again, it may use this generation a second time";
  }
}

Result<std::optional<checkpoint::Manifest>> ChooseCheckpoint(FileSystem& files,
                                                             const Experiment& experiment,
                                                             uint32_t generation, int64_t newest) {
  KeepGeneration(files, experiment, generation);
  KUMO_ASSIGN_OR_RETURN(ResumePoint point, NewestToResume(files, experiment, newest));
  for (const std::string& skipped : point.skipped) LOG(ERROR) << "skips " << skipped;
  return std::move(point.manifest);
}

}  // namespace kumo
