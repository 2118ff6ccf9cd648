// A job's status as the progress line shows it.
//
// Pure function; thread-safe.
#pragma once

#include "common/telemetry/progress.h"
#include "proto/wire.pb.h"

namespace kumo {

RoundProgress ProgressOf(const wire::JobStatus& status);

}  // namespace kumo
