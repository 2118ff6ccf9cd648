#include <optional>

#include "models/graph/rewrites/rewrites.h"

namespace kumo {
namespace {

// The spec's field for an activation; null if there is none, or if it is set.
std::optional<Activation>* PlaceFor(OpSpec* spec) {
  return std::visit(
      []<typename Spec>(Spec& op) -> std::optional<Activation>* {
        if constexpr (requires { op.activation.has_value(); }) {
          return op.activation ? nullptr : &op.activation;
        } else {
          return nullptr;
        }
      },
      *spec);
}

}  // namespace

void FuseActivation(const std::function<bool(Activation)>& fuses, Graph* graph) {
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    Node& node = graph->nodes[i];
    std::optional<Activation>* const place = PlaceFor(&node.spec);
    if (place == nullptr) continue;
    Node* const reader = graph->SoleReader(node.outputs[0]);
    if (reader == nullptr) continue;
    const auto* const activation = reader->As<ActivationSpec>();
    if (activation == nullptr || !fuses(activation->activation)) continue;
    // The place has room for the function's name, not for a number that goes with it.
    if (activation->activation == Activation::kLeakyRelu) continue;
    *place = activation->activation;
    node.outputs = reader->outputs;
    graph->Remove(reader);
  }
}

}  // namespace kumo
