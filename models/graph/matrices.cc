#include "models/graph/matrices.h"

#include <algorithm>
#include <set>

namespace kumo {
namespace {

// An op with tensors and products multiplies its inputs by its first tensor.
bool HasMatrix(const Node& node) { return !node.parameters.empty() && ProductsOf(node.spec) > 0; }

const Node* MakerOf(const Graph& graph, int value) {
  const auto maker = std::ranges::find_if(graph.nodes, [value](const Node& node) {
    return std::ranges::count(node.outputs, value) > 0;
  });
  return maker == graph.nodes.end() ? nullptr : &*maker;
}

// The last matrices on each way to a loss.
std::set<int> HeadsOf(const Graph& graph) {
  std::set<int> heads, seen;
  std::vector<int> values;
  for (const LossNode& loss : graph.losses) {
    values.insert(values.end(), loss.inputs.begin(), loss.inputs.end());
  }
  while (!values.empty()) {
    const int value = values.back();
    values.pop_back();
    const Node* const maker = MakerOf(graph, value);
    if (!seen.insert(value).second || maker == nullptr) continue;
    if (HasMatrix(*maker)) {
      heads.insert(maker->parameters[0]);
    } else {
      values.insert(values.end(), maker->inputs.begin(), maker->inputs.end());
    }
  }
  return heads;
}

}  // namespace

std::vector<MatrixTensor> MatricesOf(const Graph& graph) {
  std::set<int> matrices;
  std::set<int> others = HeadsOf(graph);
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      (i == 0 && HasMatrix(node) ? matrices : others).insert(node.parameters[i]);
    }
  }
  std::vector<MatrixTensor> found;
  for (const int parameter : matrices) {
    const TensorSpec& tensor = graph.parameters[parameter].tensor;
    if (others.contains(parameter) || !tensor.trained()) continue;
    found.push_back({parameter, tensor.shape[0], tensor.size() / tensor.shape[0]});
  }
  return found;
}

}  // namespace kumo
