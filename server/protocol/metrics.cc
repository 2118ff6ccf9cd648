#include "server/protocol/metrics.h"

#include <string>

namespace kumo {

Status CheckMetrics(const MetricSums& sums, int64_t samples, const MetricList& metrics) {
  if (sums.samples != samples) {
    return InvalidArgument("metrics of " + std::to_string(sums.samples) + " samples instead of " +
                           std::to_string(samples));
  }
  return metrics.Check(sums);
}

}  // namespace kumo
