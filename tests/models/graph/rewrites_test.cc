#include "models/graph/rewrites/rewrites.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/network.h"
#include "tests/models/graph/small_graph.h"

namespace kumo {
namespace {

// "conv1: input -> 1, relu1: 1 -> 2, ...": nodes with the values that they read and make.
std::string Text(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    text += node.name + "(";
    for (const int input : node.inputs) {
      text += (text.ends_with('(') ? "" : " ") + graph.values[input].shape.ToString();
    }
    text += ") ";
  }
  return text + "loss(" + graph.values[graph.loss().inputs[0]].shape.ToString() + ")";
}

constexpr char kConvolution[] = "layers { name: \"conv\" convolution { outputs: 4 kernel: 3 } }\n";
constexpr char kRelu[] = "layers { name: \"relu\" relu {} }\n";
constexpr char kPool[] = "layers { name: \"pool\" max_pooling { kernel: 2 } }\n";

TEST(PoolBeforeActivationTest, MaxPoolingChangesItsPlaceWithActivationsInFrontOfIt) {
  Graph graph =
      GraphOf(std::string(kConvolution) + kRelu + "layers { name: \"tanh\" tanh {} }\n" + kPool);
  EXPECT_EQ(Text(graph), "conv(2x8x8) relu(4x6x6) tanh(4x6x6) pool(4x6x6) fc(4x3x3) loss(3)");
  PoolBeforeActivation(&graph);
  EXPECT_EQ(Text(graph), "conv(2x8x8) pool(4x6x6) relu(4x3x3) tanh(4x3x3) fc(4x3x3) loss(3)");
  EXPECT_EQ(graph.nodes[2].As<ActivationSpec>()->shape, (Shape{4, 3, 3}));
}

TEST(PoolBeforeActivationTest, AveragesAndActivationsThatOthersReadStay) {
  const std::string average = "layers { name: \"pool\" average_pooling { kernel: 2 } }\n";
  const std::string others =
      "layers { name: \"other\" inputs: \"relu\" max_pooling { kernel: 2 } }\n"
      "layers { name: \"sum\" inputs: \"pool\" inputs: \"other\" add {} }\n";
  for (const std::string& layers : {kRelu + average, kRelu + std::string(kPool) + others}) {
    Graph graph = GraphOf(layers);
    const std::string before = Text(graph);
    PoolBeforeActivation(&graph);
    EXPECT_EQ(Text(graph), before);
  }
}

TEST(PoolBeforeActivationTest, ActivationsThatGoDownAndUpAgainStayAndALeakyReluMoves) {
  const std::string pooled = "conv(2x8x8) pool(4x6x6) act(4x3x3) fc(4x3x3) loss(3)";
  const std::string as_it_was = "conv(2x8x8) act(4x6x6) pool(4x6x6) fc(4x3x3) loss(3)";
  const std::pair<std::string, std::string> cases[] = {{"leaky_relu {}", pooled},
                                                       {"gelu {}", as_it_was},
                                                       {"gelu { approximate: TANH }", as_it_was},
                                                       {"silu {}", as_it_was}};
  for (const auto& [activation, expected] : cases) {
    Graph graph = GraphOf(std::string(kConvolution) + "layers { name: \"act\" " + activation +
                          " }\n" + kPool);
    PoolBeforeActivation(&graph);
    EXPECT_EQ(Text(graph), expected) << activation;
  }
}

bool Always(const ConvolutionSpec&) { return true; }

TEST(PoolInConvolutionTest, AConvolutionTakesThePoolingOfItsResult) {
  Graph graph = GraphOf(std::string(kConvolution) + kPool + kRelu);
  PoolInConvolution(Always, &graph);
  EXPECT_EQ(Text(graph), "conv(2x8x8) relu(4x3x3) fc(4x3x3) loss(3)");
  EXPECT_EQ(graph.nodes[0].As<ConvolutionSpec>()->pool->kernel_height, 2);
}

TEST(PoolInConvolutionTest, WhereTheDeviceCannotThePoolingStays) {
  Graph graph = GraphOf(std::string(kConvolution) + kPool + kRelu);
  PoolInConvolution([](const ConvolutionSpec&) { return false; }, &graph);
  EXPECT_EQ(Text(graph), "conv(2x8x8) pool(4x6x6) relu(4x3x3) fc(4x3x3) loss(3)");
}

TEST(PoolInConvolutionTest, AConvolutionInGroupsLeavesThePoolingAlone) {
  Graph graph = GraphOf(
      std::string("layers { name: \"conv\" convolution { outputs: 4 kernel: 3 groups: 2 } }\n") +
      kPool);
  PoolInConvolution(Always, &graph);
  EXPECT_EQ(Text(graph), "conv(2x8x8) pool(4x6x6) fc(4x3x3) loss(3)");
}

TEST(PoolInConvolutionTest, CeilModeWithNothingLeftOverIsAsAnyOther) {
  Graph graph =
      GraphOf(kConvolution +
              std::string("layers { name: \"pool\" max_pooling { kernel: 3 ceil_mode: true } }\n"));
  PoolInConvolution(Always, &graph);
  EXPECT_EQ(graph.nodes.size(), 2u);
}

TEST(PoolInConvolutionTest, OverlappingOrPaddedWindowsStay) {
  for (const std::string pooling :
       {"kernel: 3 stride: 2", "kernel: 2 pad: 1", "kernel: 4 ceil_mode: true"}) {
    Graph graph =
        GraphOf(kConvolution + ("layers { name: \"pool\" max_pooling { " + pooling) + " } }\n");
    PoolInConvolution(Always, &graph);
    EXPECT_EQ(graph.nodes.size(), 3u) << pooling;
  }
}

TEST(FuseActivationTest, ANormalisationAppliesWhatTheDeviceFuses) {
  Graph graph = GraphOf(std::string("layers { name: \"norm\" batch_normalisation {} }\n") + kRelu +
                        "layers { name: \"other\" batch_normalisation {} }\n"
                        "layers { name: \"tanh\" tanh {} }\n"
                        "layers { name: \"hidden\" fully_connected { outputs: 9 } }\n"
                        "layers { name: \"last_relu\" relu {} }\n");
  FuseActivation([](Activation activation) { return activation == Activation::kRelu; }, &graph);
  EXPECT_EQ(Text(graph),
            "norm(2x8x8) other(2x8x8) tanh(2x8x8) hidden(2x8x8) last_relu(9) fc(9) loss(3)");
  EXPECT_EQ(graph.nodes[0].As<BatchNormalisationSpec>()->activation, Activation::kRelu);
  EXPECT_FALSE(graph.nodes[1].As<BatchNormalisationSpec>()->activation);
}

TEST(FuseActivationTest, AResultThatOthersReadStays) {
  Graph graph = GraphOf(std::string("layers { name: \"norm\" batch_normalisation {} }\n") + kRelu +
                        "layers { name: \"sum\" inputs: \"norm\" inputs: \"relu\" add {} }\n");
  FuseActivation([](Activation) { return true; }, &graph);
  EXPECT_EQ(graph.nodes.size(), 4u);
}

TEST(FuseActivationTest, ASlopeIsNotLost) {
  Graph graph = GraphOf(
      "layers { name: \"norm\" batch_normalisation {} }\n"
      "layers { name: \"leaky\" leaky_relu { slope: 0.25 } }\n");
  FuseActivation([](Activation) { return true; }, &graph);
  EXPECT_EQ(Text(graph), "norm(2x8x8) leaky(2x8x8) fc(2x8x8) loss(3)");
}

TEST(FlatteningTest, IsThereWhereNumbersMoveAndOnlyThere) {
  const std::string layers = std::string(kConvolution) + "layers { name: \"flat\" flatten {} }\n";
  Graph never = GraphOf(layers);
  Flattening([](const Shape&) { return false; }, &never);
  EXPECT_EQ(Text(never), "conv(2x8x8) fc(4x6x6) loss(3)");
  Graph always = GraphOf(layers);
  Flattening([](const Shape& shape) { return shape.plane() > 1; }, &always);
  EXPECT_EQ(Text(always), "conv(2x8x8) flat(4x6x6) fc(144) loss(3)");
  Graph implied = GraphOf(kConvolution);
  Flattening([](const Shape& shape) { return shape.plane() > 1; }, &implied);
  EXPECT_EQ(Text(implied), "conv(2x8x8) fc(4x6x6) fc(144) loss(3)");
}

}  // namespace
}  // namespace kumo
