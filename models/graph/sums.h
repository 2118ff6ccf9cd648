// Sums of a network of several losses, and their names.
#pragma once

#include <span>

#include "common/base/status.h"
#include "models/graph/graph.h"

namespace kumo {

// Gives each loss the place of its sums among the network's sums, and the network its metrics: the
// metrics of its last loss by their own names, those of the other losses, except precisions, with
// the layer's name in front ("auxiliary_accuracy"). If there are several losses, and those with a
// weight are means over samples, the last metric is total_loss, the trained loss. InvalidArgument
// for too many metrics or an invalid name, as MetricList::Make says.
Status NumberSums(Graph* graph);

// Sets the last sum, of total_loss, from the losses' sums. Does nothing if there is no such metric.
// Requires as many sums as the network has.
void AddUpTotal(const Graph& graph, std::span<double> sums);

}  // namespace kumo
