#include "server/metrics.h"

#include <string>

namespace kumo {

Status CheckMetrics(const wire::Metrics& metrics, int64_t samples) {
  if (metrics.samples() != samples) {
    return InvalidArgument("metrics of " + std::to_string(metrics.samples()) +
                           " samples instead of " + std::to_string(samples));
  }
  if (metrics.correct() < 0 || metrics.correct() > samples) {
    return InvalidArgument("metrics with " + std::to_string(metrics.correct()) + " right of " +
                           std::to_string(samples) + " samples");
  }
  return OkStatus();
}

}  // namespace kumo
