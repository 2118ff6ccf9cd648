// The sums of a network of several losses, and their names.
#pragma once

#include <span>

#include "common/base/status.h"
#include "models/graph/graph.h"

namespace kumo {

// Gives each loss the place of its sums among the network's, and the network its metrics: those of
// its last loss by their own names; those of the others with the layer's name before it,
// "auxiliary_accuracy"; and, where there are several losses, total_loss, what is trained on.
// InvalidArgument where that makes too many, or none that is a name, as MetricList::Make says.
Status NumberSums(Graph* graph);

// Sets the sum of total_loss, the last one, from the losses' own. Where there is one loss it does
// nothing. Requires as many sums as the network has.
void AddUpTotal(const Graph& graph, std::span<double> sums);

}  // namespace kumo
