// A running job's status as a program reads it: one JSON object, its figures under their names
// everywhere (common/telemetry/figures.h). What is not known is not in it.
//
// Pure function; thread-safe. The status comes from a peer: whatever its strings hold, it is JSON.
#pragma once

#include <string>

#include "proto/wire.pb.h"

namespace kumo {

std::string JobJson(const wire::JobStatus& status);

}  // namespace kumo
