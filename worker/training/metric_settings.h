// Settings that name a metric, compared with the metrics that a job has. A pure function.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/job/metric_list.h"
#include "common/settings/experiment.h"

namespace kumo {

// InvalidArgument if checkpoint.best or job.patience_metric is none of `metrics`, or if
// job.patience has no validation set. whose: the place that declares the metrics; remedy: how to
// declare another one, a clause.
Status CheckMetricSettings(const Experiment& experiment, const MetricList& metrics,
                           int64_t validation_samples, const std::string& whose,
                           const std::string& remedy);

}  // namespace kumo
