// Survey service: the driver of a checkpoint survey (server/disks/checkpoint_survey.h) over ZeroMQ,
// for server 0 with a disk of its own, before the job begins.
//
// A function; it blocks until the survey is over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process/signals.h"
#include "common/base/status.h"
#include "common/telemetry/console.h"
#include "server/disks/checkpoint_survey.h"
#include "server/node/server_node.h"

namespace kumo {

struct SurveyedDisks {
  uint32_t generation = 0;           // CheckpointSurvey::generation
  std::vector<std::string> skipped;  // checkpoints that lack a file, and its name
};

// Fetches a complete checkpoint to the disk if a survey is needed. Listens at `address` meanwhile.
// Errors: of CheckpointSurvey::outcome and of ZmqTransport; Unavailable after a request to stop.
Result<SurveyedDisks> SurveyDisks(const ServerNodeSettings& settings, const std::string& address,
                                  FileSystem* files, const Clock* clock, StopSource* stops,
                                  Console* console);

}  // namespace kumo
