#include "models/graph/graph.h"

#include <algorithm>
#include <cstdint>

namespace kumo {

std::vector<TensorSpec> Graph::tensors() const {
  std::vector<TensorSpec> specs;
  for (const Parameter& parameter : parameters) specs.push_back(parameter.tensor);
  return specs;
}

int64_t Graph::parameters_of(const Node& node) const {
  int64_t sum = 0;
  for (const int parameter : node.parameters) sum += parameters[parameter].tensor.size();
  return sum;
}

int64_t Graph::trained_parameters() const {
  int64_t sum = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.tensor.trained()) sum += parameter.tensor.size();
  }
  return sum;
}

int64_t Graph::frozen_parameters() const {
  int64_t sum = 0;
  for (const Parameter& parameter : parameters) {
    const TensorSpec& tensor = parameter.tensor;
    if (tensor.segment != Segment::kStatistics && !tensor.trained()) sum += tensor.size();
  }
  return sum;
}

bool Graph::trains(const Node& node) const {
  return std::ranges::any_of(node.parameters,
                             [&](int parameter) { return parameters[parameter].tensor.trained(); });
}

const LossNode* Graph::FindLossWithout(const std::string& field, int64_t label) const {
  const auto refuses = [&](int number) {
    const Target& target = targets[number];
    // Losses of classes at positions, which take shares too, have the field ignored_label.
    return target.field == field && target.shares && label >= target.classes &&
           label != target.ignored;
  };
  const auto loss = std::ranges::find_if(
      losses, [&](const LossNode& one) { return std::ranges::any_of(one.targets, refuses); });
  return loss == losses.end() ? nullptr : &*loss;
}

int Graph::AddValue(const Shape& shape) {
  values.push_back({shape});
  return static_cast<int>(values.size()) - 1;
}

Node* Graph::SoleReader(int value) {
  Node* reader = nullptr;
  int64_t reads = std::ranges::count(outputs, value, &Output::value);
  for (const LossNode& loss : losses) reads += std::ranges::count(loss.inputs, value);
  for (Node& node : nodes) {
    const int64_t times = std::ranges::count(node.inputs, value);
    if (times > 0) reader = &node;
    reads += times;
  }
  return reads == 1 ? reader : nullptr;
}

void Graph::Remove(const Node* node) { nodes.erase(nodes.begin() + (node - nodes.data())); }

void Graph::Redirect(int from, int to) {
  for (Node& node : nodes) std::ranges::replace(node.inputs, from, to);
  for (LossNode& loss : losses) std::ranges::replace(loss.inputs, from, to);
  for (Output& output : outputs) output.value = output.value == from ? to : output.value;
}

}  // namespace kumo
