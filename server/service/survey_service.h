// Server 0 with a disk of its own, before the job begins: where that disk has nothing to go on from
// that is whole, the other servers' disks are asked (server/disks/checkpoint_survey.h), over
// ZeroMQ.
//
// A function; it blocks until that is done.
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
  uint32_t generation = 0;           // Survey::generation
  std::vector<std::string> skipped;  // checkpoints that lack a file, and which
};

// Makes the disk whole where a survey is needed. Listens at `address` meanwhile. Errors: those of
// Survey::outcome; of ZmqTransport; Unavailable after a request to stop.
Result<SurveyedDisks> SurveyDisks(const ServerNodeSettings& settings, const std::string& address,
                                  FileSystem* files, const Clock* clock, StopSource* stops,
                                  Console* console);

}  // namespace kumo
