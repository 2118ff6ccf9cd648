// What a job has come to, read from its output folder when its processes have ended.
#pragma once

#include <string>

#include "common/base/file.h"

namespace kumo {

struct JobResult {
  std::string checkpoint;   // the folder of the newest complete one; "" without one
  std::string figures;      // the line of log.jsonl about its last epoch, a JSON object; "" without
  std::string description;  // the same for a person: "epoch 5, validation accuracy 0.9938"
};

// What cannot be read is left out: a job's end does not depend on it.
JobResult ReadJobResult(FileSystem& files, const std::string& output_directory);

}  // namespace kumo
