// Sums that a worker tells of its samples, which are added up with others'.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/job/metric_list.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// InvalidArgument unless they are sums of these metrics, over so many samples, as it follows from
// the job's plan: what a sum of them weighs is not for a worker to say.
Status CheckMetrics(const MetricSums& sums, int64_t samples, const MetricList& metrics);

}  // namespace kumo
