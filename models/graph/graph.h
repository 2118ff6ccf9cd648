// Graph of a network: values (arrays of one sample's numbers), nodes that compute values of other
// values, and parameters, which belong to the graph, so that several nodes may use the same
// parameter.
//
// Nodes lie in an order in which they can be computed. The first values are the inputs; every other
// value that a node reads is the output of an earlier node. A value without a reader is left over
// from a rewrite.
//
// Values; thread-safe as such.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "models/layers/loss.h"
#include "models/layers/ops.h"
#include "models/tensor/parameter.h"
#include "models/tensor/tensor.h"

namespace kumo {

struct Value {
  Shape shape;
  // If more than 0: the value holds integers in [0, vocabulary). Only inputs do.
  int64_t vocabulary = 0;
};

struct Node {
  std::string name;       // of its layer
  const char* kind = "";  // as in the network file
  std::string detail;     // for people: "5x5, stride 1"
  OpSpec spec;
  std::vector<int> inputs;      // values
  std::vector<int> outputs;     // values
  std::vector<int> parameters;  // of the graph, in the order of the op's Bind

  template <typename Spec>
  const Spec* As() const {
    return std::get_if<Spec>(&spec);
  }
  template <typename Spec>
  Spec* As() {
    return std::get_if<Spec>(&spec);
  }
};

struct LossNode {
  std::string name;
  const char* kind = "";
  std::string detail;  // for people
  LossSpec spec;
  std::vector<int> inputs;   // values
  std::vector<int> targets;  // of the graph
  float weight = 1;          // its share of the trained loss; 0: it is only measured
  int first_sum = 0;         // of its sums, among the network's
  MetricList metrics;        // of its sums
};

struct Output {
  std::string name;  // of the layer whose output it is
  int value = 0;
  bool implied = false;  // the file names no outputs: these are the scores
};

struct Graph {
  std::string name;
  std::vector<std::string> inputs;  // the samples' fields that the first values are
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Parameter> parameters;
  // At least one; the last one is the network's purpose.
  std::vector<LossNode> losses;
  std::vector<Target> targets;  // of all losses
  MetricList metrics;           // of the network's sums
  // At least one: those that the file names, or the first value that the last loss reads.
  std::vector<Output> outputs;

  const LossNode& loss() const { return losses.back(); }
  // The first target of the last loss.
  const Target& target() const { return targets[loss().targets[0]]; }
  // The first loss that takes the field as classes, could ignore the number `label`, which is none
  // of its classes, and does not; null if there is none.
  const LossNode* FindLossWithout(const std::string& field, int64_t label) const;
  // Whether the value is the scores of target()'s classes, and not one of several inputs.
  bool IsScores(int value) const {
    return target().classes > 0 && loss().inputs == std::vector<int>{value};
  }
  // The last loss, if the network is a detector; else null.
  const MultiboxSpec* detector() const { return std::get_if<MultiboxSpec>(&loss().spec); }
  bool IsInput(int value) const { return value < static_cast<int>(inputs.size()); }
  // In the order of the file, as ParameterLayout::Make takes them.
  std::vector<TensorSpec> tensors() const;
  // Numbers of `node`'s parameters; of all that are trained; of all that would be trained if their
  // layers were (trainable: false).
  int64_t parameters_of(const Node& node) const;
  int64_t trained_parameters() const;
  int64_t frozen_parameters() const;
  // Whether `node` has a parameter that is trained.
  bool trains(const Node& node) const;

  // A new value; its number.
  int AddValue(const Shape& shape);
  // The only node that reads a value; null if no node or several nodes or a loss read it, or if it
  // is an output.
  Node* SoleReader(int value);
  void Remove(const Node* node);
  // Every reader of `from` reads `to` from now on.
  void Redirect(int from, int to);
};

}  // namespace kumo
