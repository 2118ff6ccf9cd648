#include "models/graph/sums.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kumo {

Status NumberSums(Graph* graph) {
  LossNode& last = graph->losses.back();
  last.first_sum = 0;
  int sums = last.metrics.sums();
  std::vector<Metric> metrics = last.metrics.metrics();
  for (LossNode& loss : graph->losses) {
    if (&loss == &last) continue;
    loss.first_sum = sums;
    for (Metric metric : loss.metrics.metrics()) {
      metric.name = loss.name + "_" + metric.name;
      std::ranges::replace(metric.name, '.', '_');  // which names of metrics do not have
      metric.sum += sums;
      metric.divisor += sums;
      metrics.push_back(std::move(metric));
    }
    sums += loss.metrics.sums();
  }
  if (graph->losses.size() > 1)
    metrics.push_back({"total_loss", sums, MetricFormula::kMean, false});
  KUMO_ASSIGN_OR_RETURN(graph->metrics, MetricList::Make(std::move(metrics)));
  return OkStatus();
}

void AddUpTotal(const Graph& graph, std::span<double> sums) {
  if (graph.losses.size() == 1) return;
  double total = 0;
  for (const LossNode& loss : graph.losses) {
    total += static_cast<double>(loss.weight) * sums[loss.first_sum];
  }
  sums.back() = total;
}

}  // namespace kumo
