#include "server/disks/generation_file.h"

#include <algorithm>
#include <string>

#include <glog/logging.h>

#include "common/base/text.h"
#include "common/job/protocol.h"

namespace kumo {
namespace {

std::string GenerationFile(const Experiment& experiment) {
  return JoinPath(experiment.output.directory, "generation");
}

Status WriteGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation) {
  return WriteFileAtomically(files, GenerationFile(experiment), std::to_string(generation) + "\n");
}

}  // namespace

bool HasGeneration(FileSystem& files, const Experiment& experiment) {
  return files.Exists(GenerationFile(experiment));
}

Result<uint32_t> LastGeneration(FileSystem& files, const Experiment& experiment) {
  constexpr uint64_t kLongest = 1 << 20;
  const Result<std::string> text = ReadWholeFile(files, GenerationFile(experiment), kLongest);
  if (!text.ok()) {
    const StatusCode code = text.status().code();
    const bool damaged = code == StatusCode::kDataLoss || code == StatusCode::kInvalidArgument;
    if (damaged || code == StatusCode::kNotFound) return 0;
    return text.status();
  }
  const uint32_t number = ParseNumber<uint32_t>(text->substr(0, text->find('\n'))).value_or(0);
  return number <= kLastGeneration ? number : 0;
}

Result<uint32_t> ReserveGeneration(FileSystem& files, const Experiment& experiment,
                                   uint32_t at_least) {
  KUMO_ASSIGN_OR_RETURN(const uint32_t last, LastGeneration(files, experiment));
  const uint32_t generation = std::max(last, at_least) + 1;
  if (generation > kLastGeneration) {
    return FailedPrecondition(GenerationFile(experiment) +
                              ": no generation is left; begin the job in another output.directory");
  }
  KUMO_RETURN_IF_ERROR(WriteGeneration(files, experiment, generation));
  return generation;
}

void KeepGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation) {
  if (Status status = WriteGeneration(files, experiment, generation); !status.ok()) {
    LOG(WARNING) << status.message()
                 << "; if server 0 is started again, it may use this generation a second time";
  }
}

}  // namespace kumo
