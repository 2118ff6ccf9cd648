#include <utility>

#include "models/graph/rewrites/rewrites.h"

namespace kumo {
namespace {

bool IsMonotone(const Node& node) {
  const auto* const activation = node.As<ActivationSpec>();
  return activation != nullptr && IsNonDecreasing(activation->activation);
}

// before: x -> activation -> y -> pool -> z. after: x -> pool -> y -> activation -> z, where y has
// become smaller. The two change their places among the nodes.
void Swap(Node* activation, Node* pool, Graph* graph) {
  const int y = activation->outputs[0];
  const int z = pool->outputs[0];
  pool->inputs = activation->inputs;
  pool->outputs = {y};
  activation->inputs = {y};
  activation->outputs = {z};
  graph->values[y].shape = graph->values[z].shape;
  activation->As<ActivationSpec>()->shape = graph->values[z].shape;
  std::swap(*activation, *pool);
}

}  // namespace

void PoolBeforeActivation(Graph* graph) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Node& node : graph->nodes) {
      if (!IsMonotone(node)) continue;
      Node* const reader = graph->SoleReader(node.outputs[0]);
      if (reader == nullptr) continue;
      const PoolingSpec* const pool = reader->As<PoolingSpec>();
      if (pool == nullptr || pool->kind != PoolingSpec::Kind::kMax) continue;
      Swap(&node, reader, graph);
      changed = true;
    }
  }
}

}  // namespace kumo
