#include "models/graph/build_graph.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/graph/sums.h"
#include "models/network.h"
#include "tests/models/graph/small_graph.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kLoss[] =
    "layers { name: \"fc\" fully_connected { outputs: 3 } }\n"
    "layers { name: \"loss\" softmax_cross_entropy {} }\n";

Result<Graph> Build(const std::string& layers, const std::string& loss = kLoss) {
  const Result<model::Network> network = ParseNetwork(
      "name: \"n\"\ninput { channels: 2 height: 4 width: 4 }\n" + layers + loss, "n.pbtxt");
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

constexpr char kTwoLosses[] =
    "layers { name: \"a\" convolution { outputs: 2 kernel: 3 } }\n"
    "layers { name: \"side\" fully_connected { outputs: 3 } }\n"
    "layers { name: \"aside\" loss_weight: 0.5 softmax_cross_entropy { top: 2 } }\n"
    "layers { name: \"b\" inputs: \"a\" relu {} }\n";

TEST(BuildGraphTest, TheLastLossHasItsMetricsNamesAndOthersTheirLayersBeforeThem) {
  const Result<Graph> graph = Build(kTwoLosses);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ASSERT_EQ(graph->losses.size(), 2u);
  EXPECT_EQ(graph->losses[0].weight, 0.5f);
  EXPECT_EQ(std::get<SoftmaxCrossEntropySpec>(graph->losses[0].spec).weight, 0.5f);
  EXPECT_EQ(graph->loss().name, "loss");
  EXPECT_EQ(graph->metrics.Names(),
            "loss, accuracy, aside_loss, aside_accuracy, aside_top2_accuracy, total_loss");
  EXPECT_EQ(graph->metrics.sums(), 6);
  std::vector<double> sums = {4, 9, 6, 9, 9, 0};
  AddUpTotal(*graph, sums);
  EXPECT_THAT(sums, ElementsAre(4, 9, 6, 9, 9, 4 + 0.5 * 6));
  EXPECT_EQ(Build("")->metrics.Names(), "loss, accuracy");
}

// A detector's head; its loss divides by boxes instead of samples.
std::string BoxHead(const std::string& name, const std::string& of_loss = "",
                    const std::string& of_layers = "") {
  const auto map = [&](const std::string& part, int outputs) {
    return "layers { name: \"" + name + part + "\" inputs: \"map\" " + of_layers +
           " convolution { outputs: " + std::to_string(outputs) + " kernel: 1 } }\n";
  };
  return map("_o", 8) + map("_s", 6) + "layers { name: \"" + name + "\" inputs: \"" + name +
         "_o\" inputs: \"" + name + "_s\" " + of_loss +
         " multibox { classes: 2 maps { step: 2 size: 4 next_size: 6 } } }\n";
}
const std::string kMeasured = BoxHead("first", "loss_weight: 0", "trainable: false");
const std::string kMap = "layers { name: \"map\" convolution { outputs: 2 kernel: 1 } }\n";

// The counts of an evaluation are the last loss's.
TEST(BuildGraphTest, OnlyTheLastLossHasPrecisions) {
  const Result<Graph> graph = Build(kMap + kMeasured + BoxHead("second"), "");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->metrics.Names(),
            "loss, offset_loss, class_loss, map, map_11, map_coco, "
            "first_loss, first_offset_loss, first_class_loss");
  EXPECT_EQ(graph->losses[0].first_sum, MultiboxSpec::sums());
  EXPECT_EQ(graph->metrics.sums(), MultiboxSpec::sums() + 4);
}

TEST(BuildGraphTest, ATotalIsToldIfAllTrainedLossesAreMeansOverSamples) {
  std::vector<double> sums(MultiboxSpec::sums() + 4, 3.0);
  const std::vector<double> before = sums;
  AddUpTotal(*Build(kMap + kMeasured + BoxHead("second"), ""), sums);
  EXPECT_EQ(sums, before) << "no sum is the total's";
  const std::string mean =
      "layers { name: \"scores\" inputs: \"map\" fully_connected { outputs: 3 } }\n"
      "layers { name: \"aside\" targets: \"kind\" softmax_cross_entropy {} }\n";
  EXPECT_EQ(Build(kMap + kMeasured + BoxHead("last"), "")->metrics.Find("total_loss"), nullptr);
  const Result<Graph> graph =
      Build(kMap + kMeasured + mean +
                "layers { name: \"d\" inputs: \"map\" fully_connected { outputs: 3 } }\n"
                "layers { name: \"last\" targets: \"kind\" softmax_cross_entropy {} }\n",
            "");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_NE(graph->metrics.Find("total_loss"), nullptr) << "the ratio trains nothing";
}

// A round's gradients are weighed by the boxes with an object: gradients that are means over
// samples would count by these, too.
TEST(BuildGraphTest, ALossBesideMultiboxHasNoWeight) {
  const auto mean = [](const std::string& fields) {
    return "layers { name: \"scores\" inputs: \"map\" fully_connected { outputs: 3 } }\n"
           "layers { name: \"aside\" targets: \"kind\" " +
           fields + " softmax_cross_entropy {} }\n";
  };
  const auto error = [](const std::string& layers) {
    return Build(kMap + layers, "").status().message();
  };
  EXPECT_THAT(
      error(mean("") + BoxHead("boxes")),
      HasSubstr("layer aside: has a loss_weight above 0, and so has the loss boxes: multibox "
                "divides by the boxes with an object, and no other loss can be trained beside it; "
                "set loss_weight: 0 here"));
  EXPECT_THAT(error(BoxHead("boxes") + mean("loss_weight: 0.5")),
              HasSubstr("layer boxes: must be the last loss"));
  EXPECT_THAT(
      error(BoxHead("boxes") + BoxHead("others")),
      HasSubstr("layer boxes: has a loss_weight above 0, and so has the loss others: multibox"));
  EXPECT_EQ(error(kMeasured + BoxHead("boxes")), "");
  EXPECT_THAT(error(BoxHead("boxes") + kMeasured),
              HasSubstr("layer boxes: must be the last loss, since contributions count by its"));
  EXPECT_THAT(error(mean("") + BoxHead("boxes", "loss_weight: 0", "trainable: false")),
              HasSubstr("layer boxes: has the loss_weight 0, but the last loss determines"));
}

TEST(BuildGraphTest, OutputsAreTheLayersThatTheFileNamesOrWhatTheLastLossReads) {
  const Result<Graph> one = Build(kTwoLosses);
  ASSERT_EQ(one->outputs.size(), 1u);
  EXPECT_EQ(one->outputs[0].value, one->loss().inputs[0]);
  const Result<Graph> several =
      Build(std::string("outputs: \"fc\"\noutputs: \"b\"\noutputs: \"c\"\n") + kTwoLosses +
            "layers { name: \"c\" inputs: \"b\" tanh {} }\n"
            "layers { name: \"d\" inputs: \"b\" tanh {} }\n");
  ASSERT_TRUE(several.ok()) << several.status().message();
  std::vector<std::string> names;
  for (const Output& output : several->outputs) names.push_back(output.name);
  EXPECT_THAT(names, ElementsAre("fc", "b", "c")) << "and c, which no layer reads";
}

TEST(BuildGraphTest, WhatCannotBeIsRefusedByFileLineAndName) {
  const std::string relu = "layers { name: \"a\" relu {} }\n";
  const std::string convolution = "layers { name: \"a\" convolution { outputs: 2 kernel: 3 } }\n";
  const std::pair<std::string, const char*> cases[] = {
      {relu + "layers { name: \"b\" loss_weight: 1 relu {} }\n",
       "layer b: loss_weight: only a loss"},
      {"layers { name: \"b\" softmax_cross_entropy {} }\n" + relu,
       "n.pbtxt:4: layer a: inputs must be given, since the layer before it is a loss"},
      {"layers { name: \"b\" softmax_cross_entropy {} }\n"
       "layers { name: \"a\" inputs: \"b\" relu {} }\n",
       "layer a: inputs: layer b is a loss, which no layer reads"},
      {convolution + "layers { name: \"b\" loss_weight: -1 softmax_cross_entropy {} }\n",
       "layer b: loss_weight must be at least 0, is -1"},
      {convolution + "layers { name: \"b\" huber {} }\n" +
           "layers { name: \"c\" inputs: \"a\" relu {} }\n",
       "layer loss: takes 3 classes as field \"label\", and loss b numbers, 2x2x2; name another"},
      {convolution + "layers { name: \"d\" fully_connected { outputs: 3 } }\n" +
           "layers { name: \"b\" loss_weight: 0 softmax_cross_entropy {} }\n" +
           "layers { name: \"c\" inputs: \"a\" relu {} }\n",
       "n.pbtxt:4: layer d: no loss trains its tensors"},
      {"outputs: \"x\"\n" + relu, "n.pbtxt: outputs: \"x\" is no layer that has an output"},
      {"outputs: \"loss\"\n" + relu, "n.pbtxt: outputs: \"loss\" is no layer"},
      {"outputs: \"a\" outputs: \"a\"\n" + relu, "outputs: \"a\" is listed twice"},
      {"outputs: \"probabilities\"\nlayers { name: \"probabilities\" relu {} }\n",
       "is reserved for the softmax of the scores"},
      {convolution + "layers { name: \"UP\" fully_connected { outputs: 3 } }\n" +
           "layers { name: \"Big\" softmax_cross_entropy {} }\n" +
           "layers { name: \"c\" inputs: \"a\" relu {} }\n",
       "Big_loss"},
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
       "tensors_of: b.weight has another shape than layer a has, or none"},
      {convolution +
           "layers { name: \"b\" tensors_of: \"a\" convolution { outputs: 3 kernel: 2 } }\n",
       "tensors_of: b.weight has another shape than layer a has, or none"},
      {convolution + "layers { name: \"b\" tensors_of: \"a\" convolution { outputs: 2 kernel: 2 "
                     "no_bias: true weight { he_normal {} } } }\n",
       "weight must not be given: the tensors are a's"},
      {convolution + "layers { name: \"b\" trainable: false tensors_of: \"a\" convolution { "
                     "outputs: 2 kernel: 2 no_bias: true } }\n",
       "trainable must not be given: the tensors are a's"},
      {"layers { name: \"b\" trainable: false relu {} }\n",
       "n.pbtxt:3: layer b: trainable: a relu has no tensors to train; remove the field"},
      {convolution + "layers { name: \"b\" weight_decay_factor: 0 softmax_cross_entropy {} }\n",
       "weight_decay_factor: a loss has no tensors to train"},
      {"layers { name: \"b\" learning_rate_factor: -0.5 convolution { outputs: 2 kernel: 3 } }\n",
       "n.pbtxt:3: layer b: learning_rate_factor must be a number of at least 0, is -0.5"},
      {"layers { name: \"b\" weight_decay_factor: inf convolution { outputs: 2 kernel: 3 } }\n",
       "weight_decay_factor must be a number of at least 0, is inf"},
      {"layers { name: \"b\" trainable: false learning_rate_factor: 2 "
       "convolution { outputs: 2 kernel: 3 } }\n",
       "trainable and learning_rate_factor contradict each other"},
      {"layers { name: \"b\" trainable: true learning_rate_factor: 0 "
       "convolution { outputs: 2 kernel: 3 } }\n",
       "trainable and learning_rate_factor contradict each other"},
      {"layers { name: \"b\" trainable: false weight_decay_factor: 2 "
       "convolution { outputs: 2 kernel: 3 } }\n",
       "weight_decay_factor: tensors that are not trained do not decay"},
      {"layers { name: \"b\" weight_decay_factor: 2 batch_normalisation {} }\n",
       "weight_decay_factor: weight decay leaves the tensors of a batch_normalisation alone"},
      {"biases { weight_decay_factor: -1 }\n",
       "biases: weight_decay_factor must be a number of at least 0, is -1"},
      {"scales { learning_rate_factor: 0 }\n",
       "scales: learning_rate_factor must be above 0; layers are frozen whole"},
  };
  for (const auto& [layers, message] : cases) {
    EXPECT_THAT(ErrorOf(layers), HasSubstr(message)) << layers;
  }
}

TEST(BuildGraphTest, ALayersTensorsHaveItsFactors) {
  const Result<Graph> graph = Build(
      "layers { name: \"a\" learning_rate_factor: 0.5 weight_decay_factor: 3 "
      "convolution { outputs: 2 kernel: 3 pad: 1 } }\n"
      "layers { name: \"b\" learning_rate_factor: 2 batch_normalisation {} }\n"
      "layers { name: \"c\" trainable: false batch_normalisation {} }\n"
      "layers { name: \"d\" tensors_of: \"c\" batch_normalisation {} }\n"
      "layers { name: \"e\" learning_rate_factor: 0 fully_connected { outputs: 2 } }\n"
      "layers { name: \"f\" trainable: true weight_decay_factor: 1 "
      "fully_connected { outputs: 2 } }\n");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::vector<StepFactors> factors;
  for (const TensorSpec& tensor : graph->tensors()) factors.push_back(tensor.factors);
  const StepFactors frozen = {.rate = 0};
  EXPECT_THAT(factors, ElementsAre(StepFactors{0.5f, 3}, StepFactors{0.5f, 1},  // a
                                   StepFactors{2, 1}, StepFactors{2, 1}, StepFactors(),
                                   StepFactors(),                   // b
                                   frozen, frozen, frozen, frozen,  // c
                                   frozen, frozen,                  // e
                                   StepFactors(), StepFactors(), StepFactors(), StepFactors()));
  for (const Node& node : graph->nodes) {
    if (const auto* norm = node.As<BatchNormalisationSpec>()) {
      EXPECT_EQ(norm->frozen, node.name != "b") << node.name;
    }
  }
  EXPECT_EQ(graph->frozen_parameters(), 4 + 2 * 32 + 2);
}

// SSD's factors: biases at twice the rate, and decay for scales too. A layer's factors multiply.
TEST(BuildGraphTest, KindsOfTensorsHaveFactorsInAllLayers) {
  const Result<Graph> graph = Build(
      "biases { learning_rate_factor: 2 } scales { weight_decay_factor: 0.5 }\n"
      "layers { name: \"a\" convolution { outputs: 2 kernel: 3 pad: 1 } }\n"
      "layers { name: \"b\" learning_rate_factor: 3 weight_decay_factor: 4 batch_normalisation {} "
      "}\n"
      "layers { name: \"c\" trainable: false fully_connected { outputs: 2 } }\n");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::vector<std::pair<Segment, StepFactors>> found;
  for (const TensorSpec& tensor : graph->tensors()) {
    found.emplace_back(tensor.segment, tensor.factors);
  }
  const auto of = [](Segment segment, float rate, float decay = 1) {
    return std::pair(segment, StepFactors{rate, decay});
  };
  EXPECT_THAT(found, ElementsAre(of(Segment::kDecayed, 1), of(Segment::kUndecayed, 2),      // a
                                 of(Segment::kDecayed, 3, 2), of(Segment::kDecayed, 3, 2),  // b
                                 of(Segment::kStatistics, 1), of(Segment::kStatistics, 1),  //
                                 of(Segment::kDecayed, 0), of(Segment::kUndecayed, 0),      // c
                                 of(Segment::kDecayed, 1), of(Segment::kUndecayed, 2)));
}

std::string ErrorOfNetwork(const std::string& text) {
  return ParseNetwork("name: \"n\"\n" + text, "n.pbtxt").status().message();
}

TEST(BuildGraphTest, ANetworkOfWhichNothingIsTrainedIsRefused) {
  EXPECT_THAT(ErrorOfNetwork("input { extents: 4 }\n"
                             "layers { name: \"fc\" trainable: false "
                             "fully_connected { outputs: 3 } }\n"
                             "layers { name: \"loss\" softmax_cross_entropy {} }\n"),
              HasSubstr("n.pbtxt: no layer is trained: all layers with weights have trainable: "
                        "false"));
}

TEST(BuildGraphTest, InputsHaveNamesAndAnyRank) {
  const Graph graph = PlanNetwork(NetworkOfTwoInputs()).value();
  EXPECT_THAT(graph.inputs, ElementsAre("words", "boxes"));
  EXPECT_EQ(graph.values[0].vocabulary, 9);
  EXPECT_EQ(graph.values[1].shape, (Shape{4, 2, 3, 5}));
  EXPECT_EQ(graph.values[2].shape, (Shape{4, 6}));
  EXPECT_EQ(graph.parameters[1].tensor.shape, (std::vector<int64_t>{3, 24}));
}

TEST(BuildGraphTest, InputsThatCannotBeAreRefused) {
  const std::string rest =
      "layers { name: \"fc\" fully_connected { outputs: 3 } }\n"
      "layers { name: \"loss\" softmax_cross_entropy {} }\n";
  const std::pair<std::string, const char*> cases[] = {
      {rest, "input must be given"},
      {"input { extents: 3 channels: 2 }\n" + rest, "not both"},
      {"input { extents: [1, 2, 3, 4, 5, 6, 7, 8, 9] }\n" + rest, "input.extents must be 1 to 8"},
      {"input { extents: 0 }\n" + rest, "input.extents must be 1 to 1048576, is 0"},
      {"input { extents: [1048576, 1048576, 1048576, 1048576] }\n" + rest, "at most 2^28 numbers"},
      {"input { extents: 2 vocabulary: -1 }\n" + rest, "input.vocabulary must be"},
      {"input { extents: 2 name: \"a\" }\ninput { extents: 2 name: \"a\" }\n" + rest,
       "input: name must not be used twice"},
      {"input { extents: 2 }\ninput { extents: 2 name: \"b\" }\n" + rest, "no layer reads input b"},
      {"input { extents: 2 name: \"fc\" }\n" + rest, "layer fc: name must not be used twice"},
      {"input { extents: 2 vocabulary: 5 }\n" + rest,
       "input image gives integers, which only an embedding takes, not fully_connected"},
      {"input { extents: 2 vocabulary: 5 }\nlayers { name: \"loss\" softmax_cross_entropy {} }\n",
       "the number of layers must be 2"},
      {"input { extents: 2 }\nlayers { name: \"e\" embedding { outputs: 2 } }\n" + rest,
       "layer e: inputs: embedding must have an input of integers"},
      {"input { extents: [6, 2, 2] }\nlayers { name: \"a\" attention { heads: 1 } }\n" + rest,
       "layer a: the input must be a sequence, channels x length, is 6x2x2"},
      {"input { extents: [4, 2] }\nlayers { name: \"a\" attention { heads: 1 } }\n" + rest,
       "so a multiple of 3, are 4"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" attention { heads: 3 } }\n" + rest,
       "heads must be 1 to 2, is 3"},
      {"input { extents: [9, 2] }\nlayers { name: \"a\" attention { heads: 2 } }\n" + rest,
       "heads must divide a third of the input's 9 channels, is 2"},
      {"input { extents: [9, 2] }\nlayers { name: \"a\" layer_normalisation { no_shift: true } "
       "}\n" +
           rest,
       "no_shift needs per_position"},
      {"input { extents: [1, 9] }\nlayers { name: \"a\" layer_normalisation { per_position: true } "
       "}\n" +
           rest,
       "the input must have more than one channel, is 1x9"},
      {"input { extents: [1, 2, 3, 4] }\nlayers { name: \"a\" convolution { outputs: 1 kernel: 1 } "
       "}\n" +
           rest,
       "layer a: the input must be an image, channels x height x width, is 1x2x3x4"},
      {"input { extents: [1, 2, 3, 4] }\nlayers { name: \"a\" max_pooling { kernel: 1 } }\n" + rest,
       "the input must be an image"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" reshape { extents: [5, -1] } }\n" + rest,
       "extents must hold the input's 12 numbers, which is 6x2"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" reshape { extents: [-1, -1] } }\n" + rest,
       "extents must be 1 to 12, is -1"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" reshape { extents: [6, 3] } }\n" + rest,
       "extents must hold the input's 12 numbers"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" permute { axes: 0 } }\n" + rest,
       "the number of axes must be 2 to 8, is 1"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" permute { axes: [0, 0] } }\n" + rest,
       "axes must not name axis 0 twice"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" slice { axis: 2 end: 1 } }\n" + rest,
       "axis must be 0 to 1, is 2"},
      {"input { extents: [6, 2] }\nlayers { name: \"a\" slice { begin: 3 end: 3 } }\n" + rest,
       "end must be 4 to 6, is 3"},
      {"input { extents: 9 vocabulary: 3 }\nlayers { name: \"a\" embedding { outputs: 2 weight { "
       "normal { deviation: -1 } } } }\n" +
           rest,
       "weight: normal.deviation must be a positive number, is -1"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ErrorOfNetwork(text), HasSubstr(message)) << text;
  }
}

// Their product is no int64.
TEST(BuildGraphTest, AnOutputOfMoreNumbersThanAnInt64CountsIsRefused) {
  const std::string text =
      "name: \"n\" input { channels: 1 height: 65536 width: 4096 }\n"
      "layers { name: \"a\" transposed_convolution { outputs: 16777216 kernel: 1 stride: 64 } }\n"
      "layers { name: \"loss\" softmax_cross_entropy {} }\n";
  EXPECT_THAT(ParseNetwork(text, "n.pbtxt").status().message(),
              HasSubstr("layer a: output must have at most 2^28 numbers, is "
                        "16777216x4194241x262081"));
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
