// JSON status of a running job: one object with figures under their common names
// (common/telemetry/figures.h). Unknown values are left out.
//
// Pure function; thread-safe. Safe for any strings in a peer's status.
#pragma once

#include <string>

#include "proto/wire.pb.h"

namespace kumo {

std::string JobJson(const wire::JobStatus& status);

}  // namespace kumo
