#include "worker/training/metric_settings.h"

namespace kumo {

Status CheckMetricSettings(const Experiment& experiment, const MetricList& metrics,
                           int64_t validation_samples, const std::string& whose,
                           const std::string& remedy) {
  const auto check = [&](const std::string& key, const std::string& metric) {
    if (metrics.Find(metric) != nullptr) return OkStatus();
    return InvalidArgument(key + " = " + metric + ", but the metrics of " + whose + " are " +
                           metrics.Names() + "; set " + key +
                           " to one of these metrics, or declare " + metric + " " + remedy);
  };
  if (const std::string& best = experiment.checkpoint.best; !best.empty()) {
    KUMO_RETURN_IF_ERROR(check("checkpoint.best", best));
  }
  if (experiment.job.patience == 0) return OkStatus();
  if (validation_samples == 0) {
    return InvalidArgument("job.patience = " + std::to_string(experiment.job.patience) +
                           ", but there is no validation set; give one or set job.patience = 0");
  }
  return check("job.patience_metric", experiment.job.patience_metric);
}

}  // namespace kumo
