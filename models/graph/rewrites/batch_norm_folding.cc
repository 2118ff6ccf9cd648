#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <glog/logging.h>

#include "models/graph/rewrites/rewrites.h"

namespace kumo {
namespace {

using Tensors = std::vector<std::vector<float>>;

// The node's flag that it has a bias, if the node can take a factor for each of its outputs; else
// null.
bool* BiasOf(Node* node) {
  if (auto* const convolution = node->As<ConvolutionSpec>()) {
    return convolution->pool ? nullptr : &convolution->bias;
  }
  if (auto* const connected = node->As<FullyConnectedSpec>()) return &connected->bias;
  return nullptr;
}

bool AreItsOwn(const Graph& graph, const Node& node) {
  return std::ranges::all_of(node.parameters, [&](int parameter) {
    return std::ranges::count_if(graph.nodes, [&](const Node& other) {
             return std::ranges::count(other.parameters, parameter) > 0;
           }) == 1;
  });
}

void AddBias(Node* node, Graph* graph, Tensors* tensors) {
  const TensorSpec& weight = graph->parameters[node->parameters[0]].tensor;
  Parameter bias;
  bias.kind = TensorKind::kBias;
  bias.tensor = {node->name + ".bias", {weight.shape[0]}, Segment::kUndecayed};
  tensors->emplace_back(weight.shape[0], 0.0f);
  node->parameters.push_back(static_cast<int>(graph->parameters.size()));
  graph->parameters.push_back(std::move(bias));
}

void Fold(const Node& norm, float epsilon, const Node& node, Tensors* tensors) {
  const auto of = [&](int parameter) -> const std::vector<float>& {
    return (*tensors)[norm.parameters[parameter]];
  };
  std::vector<float>& weight = (*tensors)[node.parameters[0]];
  std::vector<float>& bias = (*tensors)[node.parameters[1]];
  const size_t of_output = weight.size() / bias.size();
  for (size_t o = 0; o < bias.size(); ++o) {
    const double factor = of(0)[o] / std::sqrt(double{of(3)[o]} + double{epsilon});
    for (float& w : std::span(weight).subspan(o * of_output, of_output)) {
      w = static_cast<float>(factor * w);
    }
    bias[o] = static_cast<float>(factor * (double{bias[o]} - of(2)[o]) + of(1)[o]);
  }
}

void DropUnused(Graph* graph, Tensors* tensors) {
  std::vector<int> place(graph->parameters.size(), -1);
  for (const Node& node : graph->nodes) {
    for (const int parameter : node.parameters) place[parameter] = 0;
  }
  int kept = 0;
  for (size_t i = 0; i < place.size(); ++i) {
    if (place[i] < 0) continue;
    place[i] = kept;
    if (static_cast<size_t>(kept) != i) {
      graph->parameters[kept] = std::move(graph->parameters[i]);
      (*tensors)[kept] = std::move((*tensors)[i]);
    }
    ++kept;
  }
  graph->parameters.resize(kept);
  tensors->resize(kept);
  for (Node& node : graph->nodes) {
    for (int& parameter : node.parameters) parameter = place[parameter];
  }
}

}  // namespace

int FoldBatchNormalisation(Graph* graph, std::vector<std::vector<float>>* tensors) {
  CHECK_EQ(graph->parameters.size(), tensors->size());
  int folded = 0;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    Node& node = graph->nodes[i];
    bool* const has_bias = BiasOf(&node);
    if (has_bias == nullptr) continue;
    Node* const reader = graph->SoleReader(node.outputs[0]);
    if (reader == nullptr) continue;
    const auto* const norm = reader->As<BatchNormalisationSpec>();
    if (norm == nullptr || norm->activation) continue;
    if (!AreItsOwn(*graph, node) || !AreItsOwn(*graph, *reader)) continue;
    if (!*has_bias) AddBias(&node, graph, tensors);
    *has_bias = true;
    Fold(*reader, norm->epsilon, node, tensors);
    node.outputs = reader->outputs;
    graph->Remove(reader);
    ++folded;
  }
  DropUnused(graph, tensors);
  return folded;
}

}  // namespace kumo
