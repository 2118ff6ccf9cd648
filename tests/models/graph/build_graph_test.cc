#include "models/graph/build_graph.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/network.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Graph> Build(const std::string& layers) {
  const Result<model::Network> network =
      ParseNetwork("name: \"n\"\ninput { channels: 2 height: 4 width: 4 }\n" + layers +
                       "layers { name: \"fc\" fully_connected { outputs: 3 } }\n"
                       "layers { name: \"loss\" softmax_cross_entropy {} }\n",
                   "n.pbtxt");
  if (!network.ok()) return network.status();
  return PlanNetwork(*network);
}

std::string ErrorOf(const std::string& layers) {
  const Result<Graph> graph = Build(layers);
  return graph.ok() ? "none" : graph.status().message();
}

TEST(BuildGraphTest, LayersReadTheOneBeforeOrThoseThatTheyName) {
  const Result<Graph> graph = Build(
      "layers { name: \"a\" relu {} }\n"
      "layers { name: \"b\" inputs: \"input\" tanh {} }\n"
      "layers { name: \"c\" inputs: \"b\" inputs: \"a\" concat {} }\n");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_THAT(graph->nodes[0].inputs, ElementsAre(0));
  EXPECT_THAT(graph->nodes[1].inputs, ElementsAre(0));
  EXPECT_THAT(graph->nodes[2].inputs, ElementsAre(2, 1));
  EXPECT_THAT(graph->nodes[3].inputs, ElementsAre(3));
  EXPECT_EQ(graph->values[3].shape, (Shape{4, 4, 4}));
}

TEST(BuildGraphTest, TensorsBelongToTheGraphAndMayBeShared) {
  const Result<Graph> graph = Build(
      "layers { name: \"a\" convolution { outputs: 2 kernel: 3 pad: 1 } }\n"
      "layers { name: \"b\" tensors_of: \"a\" convolution { outputs: 2 kernel: 3 pad: 1 } }\n");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_THAT(graph->nodes[1].parameters, ElementsAre(0, 1));
  std::vector<std::string> names;
  for (const TensorSpec& tensor : graph->tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("a.weight", "a.bias", "fc.weight", "fc.bias"));
}

TEST(BuildGraphTest, WhatCannotBeIsRefusedByFileLineAndName) {
  const std::string relu = "layers { name: \"a\" relu {} }\n";
  const std::string convolution = "layers { name: \"a\" convolution { outputs: 2 kernel: 3 } }\n";
  const std::pair<std::string, const char*> cases[] = {
      {"layers { name: \"a\" inputs: \"b\" relu {} }\n",
       "n.pbtxt:3: layer a: inputs: there is no layer \"b\" before it"},
      {"layers { name: \"a\" inputs: \"fc\" relu {} }\n", "there is no layer \"fc\" before it"},
      {relu + "layers { name: \"b\" inputs: \"imput\" relu {} }\n",
       "there is no layer \"imput\" before it; did you mean input?"},
      {"layers { name: \"input\" relu {} }\n", "which stands for the network's input"},
      {relu + "layers { name: \"b\" inputs: \"input\" relu {} }\n",
       "n.pbtxt:3: layer a: no layer reads its output"},
      {relu + "layers { name: \"b\" inputs: \"a\" inputs: \"input\" relu {} }\n",
       "inputs: relu must have 1 input, has 2"},
      {relu + "layers { name: \"b\" add {} }\n", "inputs: add must have 2 inputs or more, has 1"},
      {relu + "layers { name: \"b\" inputs: \"a\" inputs: \"a\" inputs: \"a\" multiply {} }\n",
       "inputs: multiply must have 2 inputs, has 3"},
      {convolution + "layers { name: \"b\" inputs: \"a\" inputs: \"input\" add {} }\n",
       "inputs must have one shape, are 2x2x2 and 2x4x4"},
      {convolution + "layers { name: \"b\" inputs: \"a\" inputs: \"input\" concat {} }\n",
       "inputs must have one height and width, are 2x2x2 and 2x4x4"},
      {"layers { name: \"b\" tensors_of: \"a\" relu {} }\n",
       "tensors_of: there is no layer \"a\" before it"},
      {relu + "layers { name: \"b\" tensors_of: \"a\" relu {} }\n", "a relu has no tensors"},
      {relu + "layers { name: \"b\" tensors_of: \"a\" fully_connected { outputs: 2 } }\n",
       "tensors_of: layer a is no fully_connected but a relu"},
      {convolution +
           "layers { name: \"b\" tensors_of: \"a\" convolution { outputs: 3 kernel: 2 } }\n",
       "tensors_of: b.weight has another shape than layer a has, or none"},
      {convolution + "layers { name: \"b\" tensors_of: \"a\" convolution { outputs: 2 kernel: 2 "
                     "no_bias: true weight { he_normal {} } } }\n",
       "weight must not be given: the tensors are a's"},
  };
  for (const auto& [layers, message] : cases) {
    EXPECT_THAT(ErrorOf(layers), HasSubstr(message)) << layers;
  }
}

TEST(BuildGraphTest, ALossReadsOneLayerAndHasNoTensors) {
  const std::string head =
      "name: \"n\" input { channels: 2 height: 1 width: 1 }\n"
      "layers { name: \"fc\" fully_connected { outputs: 3 } }\n"
      "layers { name: \"loss\" ";
  const auto error = [&](const std::string& fields) {
    return ParseNetwork(head + fields + " softmax_cross_entropy {} }\n", "n.pbtxt")
        .status()
        .message();
  };
  EXPECT_THAT(error("inputs: \"fc\" inputs: \"input\""), HasSubstr("must have 1 input, has 2"));
  EXPECT_THAT(error("tensors_of: \"fc\""), HasSubstr("a loss has no tensors"));
  EXPECT_EQ(error("inputs: \"fc\""), "");
}

}  // namespace
}  // namespace kumo
