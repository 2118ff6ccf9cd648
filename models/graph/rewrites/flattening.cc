#include <string>
#include <utility>

#include "models/graph/rewrites/rewrites.h"

namespace kumo {
namespace {

using Moves = std::function<bool(const Shape&)>;

void DropWhatMovesNothing(const Moves& moves, Graph* graph) {
  for (size_t i = 0; i < graph->nodes.size();) {
    const Node& node = graph->nodes[i];
    const auto* const flatten = node.As<FlattenSpec>();
    const auto* const rearrange = node.As<RearrangeSpec>();
    const bool stays = (flatten != nullptr && !moves(flatten->shape)) ||
                       (rearrange != nullptr && rearrange->keeps_order() &&
                        !moves(rearrange->input) && !moves(rearrange->output));
    if (!stays) {
      ++i;
      continue;
    }
    graph->Redirect(node.outputs[0], node.inputs[0]);
    graph->Remove(&node);
  }
}

// A node that flattens `value` for the layer of that name; its output.
int Flatten(int value, const std::string& name, size_t before, Graph* graph) {
  const Shape shape = graph->values[value].shape;
  Node node;
  node.name = name;
  node.kind = "flatten";
  node.spec = FlattenSpec{shape};
  node.inputs = {value};
  node.outputs = {graph->AddValue({shape.size()})};
  const int output = node.outputs[0];
  graph->nodes.insert(graph->nodes.begin() + static_cast<int64_t>(before), std::move(node));
  return output;
}

}  // namespace

void Flattening(const Moves& moves, Graph* graph) {
  DropWhatMovesNothing(moves, graph);
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const Node& node = graph->nodes[i];
    const auto* const product = node.As<FullyConnectedSpec>();
    if (product == nullptr || product->positions > 1) continue;
    const int input = node.inputs[0];
    if (!moves(graph->values[input].shape)) continue;
    const int flat = Flatten(input, node.name, i, graph);
    graph->nodes[++i].inputs[0] = flat;
  }
}

}  // namespace kumo
