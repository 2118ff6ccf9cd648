#include "models/graph/causality.h"

#include <cstdint>
#include <variant>

namespace kumo {

Status CheckCausal(const Graph& graph) {
  const int64_t positions = graph.values[0].shape.extents().back();
  for (const Node& node : graph.nodes) {
    if (!std::visit([&](const auto& spec) { return spec.looks_ahead(positions); }, node.spec)) {
      continue;
    }
    return InvalidArgument("network " + graph.name + ": layer " + node.name +
                           " depends on later positions, so the network cannot continue a text");
  }
  return OkStatus();
}

}  // namespace kumo
