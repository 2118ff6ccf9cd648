#include "models/graph/sums.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kumo {
namespace {

// The metrics of a loss that is not the last one, by names of their own. The counts of an
// evaluation's detections are the last loss's, so others have no precisions.
Result<MetricList> MetricsBeside(const LossNode& loss) {
  std::vector<Metric> metrics;
  for (Metric metric : loss.metrics.metrics()) {
    if (MetricList::PrecisionOf(metric)) continue;
    metric.name = loss.name + "_" + metric.name;
    std::ranges::replace(metric.name, '.', '_');  // which names of metrics do not have
    metrics.push_back(std::move(metric));
  }
  return MetricList::Make(std::move(metrics));
}

// A sum over samples of all losses is the trained loss only if each is a mean over samples.
bool HasTotal(const Graph& graph) {
  const auto is_mean = [](const LossNode& loss) {
    return loss.weight == 0 || loss.metrics.metrics().front().formula == MetricFormula::kMean;
  };
  return graph.losses.size() > 1 && std::ranges::all_of(graph.losses, is_mean);
}

}  // namespace

Status NumberSums(Graph* graph) {
  LossNode& last = graph->losses.back();
  last.first_sum = 0;
  int sums = last.metrics.sums();
  std::vector<Metric> metrics = last.metrics.metrics();
  for (LossNode& loss : graph->losses) {
    if (&loss == &last) continue;
    loss.first_sum = sums;
    KUMO_ASSIGN_OR_RETURN(const MetricList beside, MetricsBeside(loss));
    for (Metric metric : beside.metrics()) {
      metric.sum += sums;
      metric.divisor += sums;
      metrics.push_back(std::move(metric));
    }
    sums += beside.sums();
  }
  if (HasTotal(*graph)) metrics.push_back({"total_loss", sums, MetricFormula::kMean, false});
  KUMO_ASSIGN_OR_RETURN(graph->metrics, MetricList::Make(std::move(metrics)));
  return OkStatus();
}

void AddUpTotal(const Graph& graph, std::span<double> sums) {
  if (!HasTotal(graph)) return;
  double total = 0;
  for (const LossNode& loss : graph.losses) {
    if (loss.weight == 0) continue;
    total += static_cast<double>(loss.weight) * sums[loss.first_sum];
  }
  sums.back() = total;
}

}  // namespace kumo
