#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/graph/rewrites/rewrites.h"
#include "models/network.h"
#include "tests/models/branched_network.h"
#include "tests/models/graph/small_graph.h"
#include "tests/models/graph_scores.h"

namespace kumo {
namespace {

using testing::ElementsAre;

constexpr int kBatch = 3;

std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

std::vector<std::string> TensorsOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : graph.tensors()) names.push_back(tensor.name);
  return names;
}

// Folds, and compares what comes out before and after. How many went.
int Fold(Graph* graph) {
  Rng rng(7, RngPurpose::kTest);
  Tensors tensors = RandomTensors(*graph, &rng);
  const std::vector<float> inputs = NumbersWithin(kBatch * graph->values[0].shape.size(), 1, &rng);
  const std::vector<float> before = OutputOf(*graph, tensors, inputs, kBatch);
  const int folded = FoldBatchNormalisation(graph, &tensors);
  EXPECT_EQ(tensors.size(), graph->parameters.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(std::ssize(tensors[i]), graph->parameters[i].tensor.size());
  }
  const std::vector<float> after = OutputOf(*graph, tensors, inputs, kBatch);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i], after[i], 1e-5f * (1 + std::abs(before[i]))) << i;
  }
  return folded;
}

TEST(BatchNormFolding, AConvolutionAndAFullyConnectedLayerTakeTheirsInAndHaveABiasThen) {
  Graph graph = GraphOf(R"(
      layers { name: "conv" convolution { outputs: 4 kernel: 3 no_bias: true groups: 2 } }
      layers { name: "norm" batch_normalisation {} }
      layers { name: "relu" relu {} }
      layers { name: "fc1" fully_connected { outputs: 5 } }
      layers { name: "norm1" batch_normalisation { epsilon: 0.01 } })");
  EXPECT_EQ(Fold(&graph), 2);
  EXPECT_THAT(NamesOf(graph), ElementsAre("conv", "relu", "fc1", "fc"));
  EXPECT_THAT(TensorsOf(graph), ElementsAre("conv.weight", "fc1.weight", "fc1.bias", "fc.weight",
                                            "fc.bias", "conv.bias"));
}

TEST(BatchNormFolding, WhatOthersReadOrShareStays) {
  Graph graph = GraphOf(R"(
      layers { name: "conv" convolution { outputs: 2 kernel: 3 pad: 1 } }
      layers { name: "norm" batch_normalisation {} }
      layers { name: "both" inputs: "norm" inputs: "conv" add {} })");
  EXPECT_EQ(Fold(&graph), 0);
  EXPECT_EQ(graph.nodes.size(), 4u);
  // Of this one the first normalisation alone has tensors of its own.
  graph = PlanNetwork(BranchedNetwork()).value();
  EXPECT_EQ(Fold(&graph), 1);
  EXPECT_EQ(graph.nodes[1].name, "relu");
}

TEST(BatchNormFolding, OneBehindSomethingElseStays) {
  Graph graph = GraphOf(R"(
      layers { name: "norm0" batch_normalisation {} }
      layers { name: "conv" convolution { outputs: 2 kernel: 3 } }
      layers { name: "relu" relu {} }
      layers { name: "norm" batch_normalisation {} })");
  const std::vector<std::string> before = TensorsOf(graph);
  EXPECT_EQ(Fold(&graph), 0);
  EXPECT_EQ(TensorsOf(graph), before);
}

}  // namespace
}  // namespace kumo
