// Sums that a worker tells of its samples, which are added up with others'.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "proto/wire.pb.h"

namespace kumo {

// InvalidArgument unless they are of so many samples, as it follows from the job's plan: what a sum
// of them weighs is not for a worker to say.
Status CheckMetrics(const wire::Metrics& metrics, int64_t samples);

}  // namespace kumo
