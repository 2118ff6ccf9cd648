#include "models/net/net.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/network.h"
#include "tests/models/branched_network.h"
#include "tests/models/trained_net.h"

namespace kumo {
namespace {

using testing::HasSubstr;

model::Network Zoo(const std::string& name) {
  Result<model::Network> network =
      LoadNetwork(std::string(KUMO_ZOO) + "/" + name + ".pbtxt", {.vocabulary = 65, .classes = 20});
  CHECK(network.ok()) << network.status().message();
  return *network;
}

model::Network Parsed(const char* text) {
  Result<model::Network> network = ParseNetwork(text, "a test's network");
  CHECK(network.ok()) << network.status().message();
  return *network;
}

// Small, with one of everything.
model::Network SmallNetwork() {
  return Parsed(R"(
    name: "small"
    input { channels: 2 height: 9 width: 9 }
    layers { name: "conv" convolution { outputs: 5 kernel: 3 pad: 1 } }
    layers { name: "norm" batch_normalisation {} }
    layers { name: "relu" relu {} }
    layers { name: "pool" max_pooling { kernel: 3 stride: 2 } }
    layers { name: "sigmoid" sigmoid {} }
    layers { name: "mean" average_pooling { kernel: 2 } }
    layers { name: "flat" flatten {} }
    layers { name: "fc1" fully_connected { outputs: 11 } }
    layers { name: "tanh" tanh {} }
    layers { name: "drop" dropout { ratio: 0.3 } }
    layers { name: "fc2" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })");
}

// With layers that know 4 and 8 lanes of samples, and one that knows 16 alone.
model::Network NetworkOfWholeRows() {
  return Parsed(R"(
    name: "whole_rows"
    input { channels: 2 height: 7 width: 5 }
    layers { name: "conv" convolution { outputs: 6 kernel: 3 pad: 1 } }
    layers { name: "norm" batch_normalisation {} }
    layers { name: "groups" group_normalisation { groups: 2 } }
    layers { name: "relu" relu {} }
    layers { name: "pool" max_pooling { kernel: 3 stride: 2 } }
    layers { name: "drop" dropout { ratio: 0.3 } }
    layers { name: "fc" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })");
}

// A chain, a graph with branches, and one with several losses.
class AnyNetTest : public testing::TestWithParam<model::Network (*)()> {};

INSTANTIATE_TEST_SUITE_P(Networks, AnyNetTest,
                         testing::Values(
                             &SmallNetwork, &NetworkOfWholeRows, +[] { return BranchedNetwork(); },
                             +[] { return NetworkOfLosses(); }),
                         [](const auto& tested) { return tested.param().name(); });

TEST(NetTest, LeNetHasThePublishedParametersAndSegments) {
  const TrainedNet lenet(Zoo("mnist_lenet"), 1);
  int64_t parameters = 0;
  for (const TensorSpec& tensor : lenet.net->tensors()) {
    parameters += tensor.size();
    const bool bias = tensor.name.find(".bias") != std::string::npos;
    EXPECT_EQ(tensor.segment, bias ? Segment::kUndecayed : Segment::kDecayed) << tensor.name;
  }
  EXPECT_EQ(parameters, 431080);
  EXPECT_THAT(lenet.net->Describe(0), HasSubstr("431080 trained parameters"));
}

TEST(NetTest, TheLastLayersGradientsAreFinalFirst) {
  std::vector<int> tensors;
  const TrainedNet small(SmallNetwork(), 6);
  for (const Range& stage : small.net->gradient_stages()) {
    for (int64_t t = stage.begin; t < stage.end; ++t) tensors.push_back(static_cast<int>(t));
  }
  EXPECT_THAT(tensors, testing::ElementsAre(8, 9, 6, 7, 2, 3, 4, 5, 0, 1));
}

TEST(NetTest, LossOfLeNetGoesDown) {
  TrainedNet lenet(Zoo("mnist_lenet"), 32);
  const NetSamples samples(*lenet.net, 32);
  const double first = lenet.Step(samples.Slice(0, 32)).loss_sum / 32;
  EXPECT_NEAR(first, std::log(10.0), 0.5);
  for (int i = 0; i < 80; ++i) {
    lenet.Descend(0.02f);
    lenet.Step(samples.Slice(0, 32));
  }
  const LossSums last = lenet.Evaluate(samples.Slice(0, 32));
  EXPECT_LT(last.loss_sum / 32, 0.25 * first);
  EXPECT_GE(last.correct, 30);
}

TEST(NetTest, TheSameStepsGiveTheSameBits) {
  for (const char* name : {"mnist_lenet", "mnist_mlp"}) {
    std::vector<std::vector<float>> outcomes;
    for (int i = 0; i < 2; ++i) {
      TrainedNet net(Zoo(name), 20);
      const NetSamples samples(*net.net, 20);
      for (int step = 0; step < 3; ++step) {
        net.Step(samples.Slice(0, 20));
        net.Descend(0.05f);
      }
      outcomes.push_back(net.weights);
    }
    EXPECT_EQ(outcomes[0], outcomes[1]) << name;
  }
}

TEST_P(AnyNetTest, WhatRanBeforeAndTheLargestBatchDoNotMatter) {
  TrainedNet fresh(GetParam()(), 5);
  TrainedNet used(GetParam()(), 70);
  const NetSamples samples(*fresh.net, 70);
  const std::vector<float> start = used.weights;
  for (const int size : {70, 16, 33, 1, 64}) {
    used.Step(samples.Slice(70 - size, size), {1, 2, 3, static_cast<uint64_t>(size)});
    used.Evaluate(samples.Slice(0, size));
  }
  std::copy(start.begin(), start.end(), used.weights.begin());
  const StepStreams streams = {9, 1, 4, 2};
  const LossSums one = fresh.Step(samples.Slice(3, 5), streams);
  const LossSums other = used.Step(samples.Slice(3, 5), streams);
  EXPECT_EQ(one.loss_sum, other.loss_sum);
  EXPECT_EQ(one.correct, other.correct);
  EXPECT_EQ(fresh.gradients, used.gradients);
  EXPECT_EQ(fresh.weights, used.weights);  // the running statistics
}

TEST_P(AnyNetTest, SamplesLoseTheSameAmongFewAndAmongMany) {
  TrainedNet net(GetParam()(), 16);
  const NetSamples samples(*net.net, 16);
  net.Step(samples.Slice(0, 16));  // so that there are running statistics
  const LossSums all = net.Evaluate(samples.Slice(0, 16));
  LossSums few;
  for (const auto& [begin, count] : {std::pair(0, 1), {1, 3}, {4, 4}, {8, 5}, {13, 3}}) {
    const LossSums some = net.Evaluate(samples.Slice(begin, count));
    few.loss_sum += some.loss_sum;
    few.correct += some.correct;
  }
  EXPECT_NEAR(few.loss_sum, all.loss_sum, 1e-5 * std::abs(all.loss_sum));
  EXPECT_EQ(few.correct, all.correct);
}

TEST(NetTest, GradientIsTheMeanOverTheMinibatch) {
  TrainedNet net(Zoo("mnist_lenet"), 12);
  NetSamples samples(*net.net, 12);
  std::copy_n(samples.inputs.begin(), 6 * samples.size, samples.inputs.begin() + 6 * samples.size);
  std::copy_n(samples.labels.begin(), 6, samples.labels.begin() + 6);
  const LossSums half = net.Step(samples.Slice(0, 6));
  const std::vector<float> gradient = net.gradients;
  const LossSums both = net.Step(samples.Slice(0, 12));
  EXPECT_NEAR(both.loss_sum, 2 * half.loss_sum, 1e-4);
  for (size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(net.gradients[i], gradient[i], 1e-5f) << i;
  }
}

// Of the whole net, rewrites and shared buffers included; parameters drawn at random.
TEST_P(AnyNetTest, GradientsAreThoseOfTheLoss) {
  for (const auto& [threads, size] : {std::pair(1, 9), {3, 9}, {1, 3}, {1, 4}, {3, 7}, {3, 8}}) {
    TrainedNet net(GetParam()(), 9, threads);
    const NetSamples samples(*net.net, size);
    const StepStreams streams = {9, 1, 4, 2};
    const Numbers minibatch = samples.Slice(0, size);
    net.Step(minibatch, streams);
    const std::vector<float> gradients = net.gradients;
    Rng rng(8, RngPurpose::kTest);
    double error = 0;  // squared lengths of the difference and of the gradient
    double length = 0;
    int tried = 0;
    while (tried < 120) {
      const auto i =
          static_cast<int64_t>(rng.NextBelow(net.layout.segment(Segment::kUndecayed).end));
      if (net.layout.TensorAt(i) < 0) continue;
      ++tried;
      constexpr float kStep = 1e-3f;
      const float before = net.weights[i];
      net.weights[i] = before + kStep;
      const double above = net.Step(minibatch, streams).loss_sum / size;
      net.weights[i] = before - kStep;
      const double below = net.Step(minibatch, streams).loss_sum / size;
      net.weights[i] = before;
      const double expected = (above - below) / (2 * 1e-3);
      const double found = static_cast<double>(gradients[i]);
      error += (found - expected) * (found - expected);
      length += expected * expected;
    }
    // All together: single ones may step over a kink.
    EXPECT_LT(std::sqrt(error), 0.03 * std::sqrt(length));
  }
}

TEST(NetTest, EachInputOfBytesHasTheFormulaOfItsField) {
  TrainedNet net(Parsed(R"(
    name: "pair"
    input { name: "left" channels: 1 height: 2 width: 2 }
    input { name: "right" channels: 1 height: 2 width: 2 }
    outputs: "sum"
    layers { name: "sum" inputs: "left" inputs: "right" add {} }
    layers { name: "fc" fully_connected { outputs: 2 } }
    layers { name: "loss" softmax_cross_entropy {} })"),
                 1);
  // In another order than the network takes them.
  const Fields fields = {{"right", NumberType::kUint8, {1, 2, 2}, FieldKind::kPicture},
                         {kLabelField, NumberType::kInt32, {}},
                         {"left", NumberType::kUint8, {1, 2, 2}, FieldKind::kPicture}};
  const PixelFormula right = {.scale = 2}, left = {.scale = 0.5f, .mean = {1, 2, 3, 4}};
  const PixelFormula formulas[] = {right, {}, left};
  const Status connected = net.net->Connect(fields, formulas);
  ASSERT_TRUE(connected.ok()) << connected.message();
  const uint8_t lefts[] = {9, 9, 9, 9}, rights[] = {10, 0, 0, 1};
  const int32_t label[] = {1};
  const std::span<const std::byte> values[] = {std::as_bytes(std::span(rights)),
                                               std::as_bytes(std::span(label)),
                                               std::as_bytes(std::span(lefts))};
  ASSERT_TRUE(net.net->Load({1, values}).ok());
  std::vector<float> sums(4);
  ASSERT_TRUE(net.net->Predict(0, sums).ok());
  EXPECT_THAT(sums, testing::ElementsAre(20 + 4, 3.5f, 3, 2 + 2.5f));
  const PixelFormula longer[] = {right, {}, {.mean = {1, 2, 3, 4, 5}}};
  EXPECT_EQ(net.net->Connect(fields, longer).code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(net.net->Connect(fields, longer).message(),
              testing::HasSubstr("field \"left\" of network pair"));
}

TEST(NetTest, ALossThatWeighsNothingIsMeasuredAndChangesNoBit) {
  model::Network network = BranchedNetwork();
  TrainedNet plain(network, 9);
  model::Layer* const measured = network.add_layers();
  *measured = network.layers(network.layers_size() - 2);
  measured->set_name("measured");
  measured->set_loss_weight(0);
  measured->add_inputs("fc");
  measured->mutable_softmax_cross_entropy()->add_top(3);
  network.mutable_layers()->SwapElements(network.layers_size() - 2, network.layers_size() - 1);
  network.mutable_layers()->rbegin()->add_inputs("fc");
  TrainedNet net(network, 9);
  const NetSamples samples(*net.net, 9);
  const LossSums alone = plain.Step(samples.Slice(0, 9));
  ASSERT_TRUE(samples.Slice(0, 9).LoadInto(net.net.get()).ok());
  net.backend->SetStep({});
  net.net->Train();
  EXPECT_EQ(net.gradients, plain.gradients);
  const std::vector<double> sums = net.net->TakeSums().value();
  EXPECT_EQ(net.net->metrics().Names(),
            "loss, accuracy, measured_loss, measured_accuracy, measured_top3_accuracy, total_loss");
  EXPECT_THAT(std::vector(sums.begin(), sums.begin() + 4),
              testing::ElementsAre(alone.loss_sum, alone.correct, alone.loss_sum, alone.correct));
  EXPECT_GE(sums[4], sums[3]);
  EXPECT_EQ(sums[5], alone.loss_sum);
}

TEST_P(AnyNetTest, AStagesGradientsAreFinalWhenItIsTold) {
  TrainedNet small(GetParam()(), 6);
  const NetSamples samples(*small.net, 6);
  const std::vector<Range> stages = small.net->gradient_stages();
  std::vector<int> tensors;
  for (const Range& stage : stages) {
    for (int64_t t = stage.begin; t < stage.end; ++t) tensors.push_back(static_cast<int>(t));
  }
  EXPECT_EQ(std::set<int>(tensors.begin(), tensors.end()).size(), tensors.size());
  EXPECT_EQ(tensors.size(), small.net->tensors().size());

  ASSERT_TRUE(samples.Slice(0, 6).LoadInto(small.net.get()).ok());
  small.backend->SetStep({});
  std::vector<std::vector<float>> then;
  small.net->Train([&](int stage) {
    EXPECT_EQ(stage, static_cast<int>(then.size()));
    then.push_back(small.gradients);
  });
  ASSERT_EQ(then.size(), stages.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    for (int64_t t = stages[s].begin; t < stages[s].end; ++t) {
      const Range range = small.layout.tensor(static_cast<int>(t));
      for (int64_t i = range.begin; i < range.end; ++i) {
        ASSERT_EQ(then[s][i], small.gradients[i]) << small.net->tensors()[t].name;
      }
    }
  }
}

TEST_P(AnyNetTest, GradientsAreOverwrittenAndTheRestIsLeftAlone) {
  TrainedNet net(GetParam()(), 8);
  const NetSamples samples(*net.net, 8);
  net.Step(samples.Slice(0, 8));
  const std::vector<float> expected = net.gradients;
  const Range statistics = net.layout.segment(Segment::kStatistics);
  std::fill(net.gradients.begin(), net.gradients.end(), 5.0f);
  net.Step(samples.Slice(0, 8));
  for (int64_t i = 0; i < net.layout.size(); ++i) {
    const bool trained = net.layout.TensorAt(i) >= 0 && i < statistics.begin;
    ASSERT_EQ(net.gradients[i], trained ? expected[i] : 5.0f) << i;
    if (!trained) {
      ASSERT_EQ(expected[i], 0.0f) << i;
    }
  }
}

// A trained layer at the bottom, one of each kind with tensors, frozen or not, and a trained layer
// on top.
model::Network NetworkAround(bool freeze) {
  model::Network network = Parsed(R"(
    name: "around"
    input { channels: 3 height: 8 width: 8 }
    layers { name: "first" convolution { outputs: 16 kernel: 3 pad: 1 } }
    layers { name: "minimal" convolution { outputs: 16 kernel: 3 pad: 1 } }
    layers { name: "plain" convolution { outputs: 4 kernel: 5 } }
    layers { name: "pool" max_pooling { kernel: 2 } }
    layers { name: "deep" convolution { outputs: 4 kernel: 3 pad: 1 groups: 4 } }
    layers { name: "wide" convolution { outputs: 16 kernel: 1 no_bias: true } }
    layers { name: "one" convolution { outputs: 16 kernel: 1 } }
    layers { name: "groups" group_normalisation { groups: 4 } }
    layers { name: "whole" layer_normalisation {} }
    layers { name: "length" l2_normalisation { scale: 4 } }
    layers { name: "sequence" reshape { extents: [16, 4] } }
    layers { name: "places" positional_embedding {} }
    layers { name: "each" fully_connected { outputs: 12 per_position: true } }
    layers { name: "position" layer_normalisation { per_position: true } }
    layers { name: "fc" fully_connected { outputs: 10 } }
    layers { name: "tanh" tanh {} }
    layers { name: "last" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })");
  for (model::Layer& layer : *network.mutable_layers()) {
    const bool has_tensors = layer.has_convolution() || layer.has_fully_connected() ||
                             layer.has_group_normalisation() || layer.has_layer_normalisation() ||
                             layer.has_l2_normalisation() || layer.has_positional_embedding();
    const bool between = layer.name() != "first" && layer.name() != "last";
    if (freeze && has_tensors && between) layer.set_trainable(false);
  }
  return network;
}

TEST(NetTest, FrozenLayersPassGradientsOnAndGetNone) {
  for (const int batch : {3, 21}) {
    TrainedNet open(NetworkAround(false), batch);
    TrainedNet frozen(NetworkAround(true), batch);
    const NetSamples samples(*open.net, batch);
    std::fill(frozen.gradients.begin(), frozen.gradients.end(), 5.0f);
    EXPECT_EQ(frozen.Step(samples.Slice(0, batch)).loss_sum,
              open.Step(samples.Slice(0, batch)).loss_sum);
    for (int t = 0; t < static_cast<int>(open.layout.tensors().size()); ++t) {
      const std::string& name = open.layout.tensors()[t].name;
      SCOPED_TRACE(name + " of " + std::to_string(batch));
      const Range of_open = open.layout.tensor(t);
      const Range of_frozen = frozen.layout.tensor(t);
      const bool trained = name.starts_with("first.") || name.starts_with("last.");
      ASSERT_EQ(frozen.layout.tensors()[t].trained(), trained);
      for (int64_t i = 0; i < of_open.size(); ++i) {
        const float expected = trained ? open.gradients[of_open.begin + i] : 5.0f;
        ASSERT_EQ(frozen.gradients[of_frozen.begin + i], expected);
      }
    }
    // Those of the frozen layers are no stages.
    EXPECT_LT(frozen.net->gradient_stages().size(), open.net->gradient_stages().size());
  }
}

// A layer with a loss, and one that only an output reads, in this order or in the other; both have
// the same tensors.
TEST(NetTest, ALayerWithoutALossMayShareTensorsOfATrainedLayer) {
  const auto network = [](const std::string& layers, bool aside) {
    return ParseNetwork("name: \"n\" input { extents: 6 }\n" +
                            std::string(aside ? "outputs: \"fc\" outputs: \"aside\"\n" : "") +
                            "layers { name: \"x\" tanh {} }\n" + layers + R"(
        layers { name: "again" inputs: "code" tensors_of: "code" fully_connected { outputs: 6 } }
        layers { name: "fc" fully_connected { outputs: 3 } }
        layers { name: "loss" softmax_cross_entropy {} })",
                        "n")
        .value();
  };
  const std::string code = "layers { name: \"code\" inputs: \"x\" ";
  const std::string layer = "fully_connected { outputs: 6 } }\n";
  const std::string aside = "layers { name: \"aside\" inputs: \"x\" ";
  TrainedNet alone(network(code + layer, false), 5);
  const NetSamples samples(*alone.net, 5);
  std::ranges::fill(alone.gradients, 5.0f);
  alone.Step(samples.Slice(0, 5));
  for (const std::string& layers : {code + layer + aside + "tensors_of: \"code\" " + layer,
                                    aside + layer + code + "tensors_of: \"aside\" " + layer}) {
    model::Network both = network(layers, true);
    if (layers.starts_with(aside)) both.mutable_layers(3)->set_tensors_of("aside");
    TrainedNet net(both, 5);
    ASSERT_EQ(net.weights.size(), alone.weights.size());
    net.weights = alone.weights;
    std::ranges::fill(net.gradients, 5.0f);
    net.Step(samples.Slice(0, 5));
    EXPECT_EQ(net.gradients, alone.gradients) << layers;
    EXPECT_EQ(net.net->gradient_stages().size(), alone.net->gradient_stages().size());
  }
}

TEST(NetTest, AFrozenBatchNormalisationTrainsByItsRunningStatistics) {
  TrainedNet net(Parsed(R"(
    name: "n"
    input { channels: 2 height: 5 width: 5 }
    layers { name: "conv" convolution { outputs: 5 kernel: 3 } }
    layers { name: "norm" trainable: false batch_normalisation {} }
    layers { name: "tanh" tanh {} }
    layers { name: "fc" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })"),
                 12);
  const NetSamples samples(*net.net, 12);
  const Range statistics = net.layout.segment(Segment::kStatistics);
  for (int64_t i = statistics.begin; i < statistics.end; ++i) {
    net.weights[i] += 0.1f * static_cast<float>(i - statistics.begin);
  }
  const std::vector<float> start = net.weights;
  const LossSums trained = net.Step(samples.Slice(0, 12));
  EXPECT_EQ(net.weights, start);
  EXPECT_EQ(net.Evaluate(samples.Slice(0, 12)).loss_sum, trained.loss_sum);
  // The gradients of the layer before it are those of the evaluated loss.
  const Range conv = net.layout.tensor(0);
  for (int64_t i = conv.begin; i < conv.end; i += 7) {
    constexpr float kStep = 1e-2f;
    net.weights[i] = start[i] + kStep;
    const double up = net.Evaluate(samples.Slice(0, 12)).loss_sum / 12;
    net.weights[i] = start[i] - kStep;
    const double down = net.Evaluate(samples.Slice(0, 12)).loss_sum / 12;
    net.weights[i] = start[i];
    EXPECT_NEAR((up - down) / (2 * double{kStep}), double{net.gradients[i]}, 2e-3) << i;
  }
}

TEST(NetTest, InitialWeightsFollowSeedAndNames) {
  const TrainedNet one(SmallNetwork(), 1);
  const TrainedNet same(SmallNetwork(), 64);
  const TrainedNet other(SmallNetwork(), 1, 1, 2);
  EXPECT_EQ(one.weights, same.weights);
  EXPECT_NE(one.weights, other.weights);
  for (int64_t i = 0; i < one.layout.size(); ++i) {
    if (one.layout.TensorAt(i) < 0) {
      EXPECT_EQ(one.weights[i], 0.0f) << "a gap";
    }
  }
}

TEST(NetTest, RunningStatisticsMoveInTrainingOnly) {
  TrainedNet net(SmallNetwork(), 16);
  const NetSamples samples(*net.net, 16);
  const Range statistics = net.layout.segment(Segment::kStatistics);
  ASSERT_EQ(statistics.size(), 10);
  const std::vector<float> start = net.weights;
  net.Evaluate(samples.Slice(0, 16));
  EXPECT_EQ(net.weights, start);
  net.Step(samples.Slice(0, 16));
  for (int64_t i = 0; i < net.layout.size(); ++i) {
    const bool moved = net.weights[i] != start[i];
    EXPECT_EQ(moved, i >= statistics.begin && net.layout.TensorAt(i) >= 0) << i;
  }
}

// With running statistics that have settled on one minibatch, use equals training.
TEST(NetTest, RunningStatisticsSettleOnTheMinibatchs) {
  Result<model::Network> network = ParseNetwork(R"(
    name: "n" input { channels: 3 height: 4 width: 4 }
    layers { name: "norm" batch_normalisation { momentum: 0.5 } }
    layers { name: "fc" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })",
                                                "n");
  ASSERT_TRUE(network.ok());
  TrainedNet net(*network, 21);
  const NetSamples samples(*net.net, 21);
  LossSums trained;
  for (int i = 0; i < 60; ++i) trained = net.Step(samples.Slice(0, 21));
  const LossSums used = net.Evaluate(samples.Slice(0, 21));
  EXPECT_NEAR(used.loss_sum, trained.loss_sum, 1e-4);
}

TEST_P(AnyNetTest, DropoutFollowsItsStreamsAndNothingElse) {
  TrainedNet here(GetParam()(), 8);
  TrainedNet elsewhere(GetParam()(), 32);  // has computed other partitions before
  const NetSamples samples(*here.net, 8);
  const StepStreams streams = {5, 3, 100, 17};
  for (uint64_t partition = 0; partition < 3; ++partition) {
    elsewhere.Step(samples.Slice(0, 8), {5, partition, 99, 17});
  }
  here.Step(samples.Slice(0, 8), streams);
  elsewhere.Step(samples.Slice(0, 8), streams);
  EXPECT_EQ(here.gradients, elsewhere.gradients);
  for (const StepStreams& other : {StepStreams{6, 3, 100, 17}, StepStreams{5, 4, 100, 17},
                                   StepStreams{5, 3, 101, 17}, StepStreams{5, 3, 100, 18}}) {
    elsewhere.Step(samples.Slice(0, 8), other);
    EXPECT_NE(here.gradients, elsewhere.gradients);
  }
}

TEST(NetTest, TwoDropoutLayersDrawDifferentMasks) {
  Result<model::Network> network = ParseNetwork(R"(
    name: "n" input { channels: 200 height: 1 width: 1 }
    layers { name: "drop1" dropout { ratio: 0.5 } }
    layers { name: "drop2" dropout { ratio: 0.5 } }
    layers { name: "fc" fully_connected { outputs: 2 no_bias: true } }
    layers { name: "loss" softmax_cross_entropy {} })",
                                                "n");
  ASSERT_TRUE(network.ok());
  TrainedNet net(*network, 1);
  const std::vector<float> ones(200, 1.0f);
  const std::vector<int32_t> label = {0};
  net.Step({1, ones, label});
  int64_t kept = 0;
  for (int i = 0; i < 200; ++i) kept += net.gradients[i] != 0.0f ? 1 : 0;
  EXPECT_GT(kept, 20);  // a quarter; the same mask twice would keep half
  EXPECT_LT(kept, 80);
}

TEST(NetTest, BadBatchesAreRefusedAndChangeNothing) {
  TrainedNet net(SmallNetwork(), 4);
  const NetSamples samples(*net.net, 8);
  const std::vector<float> weights = net.weights;
  const std::vector<int32_t> high = {0, 4};
  const std::vector<int32_t> low = {-1, 0};
  const Numbers good = samples.Slice(0, 2);
  const Numbers bad[] = {{2, good.inputs, high},
                         {2, good.inputs, low},
                         {2, good.inputs.first(5), good.labels},
                         {2, good.inputs, good.labels.first(1)},
                         {0, {}, {}},
                         samples.Slice(0, 5)};
  for (const Numbers& batch : bad) {
    EXPECT_EQ(batch.LoadInto(net.net.get()).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(bad[0].LoadInto(net.net.get()).message(),
              HasSubstr("label 4 of sample 1 of the minibatch is outside the 4 classes"));
  EXPECT_EQ(net.weights, weights);
}

TEST(NetTest, AnotherNetworksLayoutIsRefused) {
  TrainedNet small(SmallNetwork(), 4);
  TrainedNet lenet(Zoo("mnist_lenet"), 4);
  const Status status = small.net->Bind(lenet.layout, lenet.weights.data(), lenet.gradients.data());
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("conv"));
  EXPECT_EQ(small.net->InitialWeights(1, small.layout, lenet.weights).code(),
            StatusCode::kFailedPrecondition);
}

// Ops may keep what they made of weights that are fixed, the transforms of 3x3 kernels for one.
TEST(NetTest, ANetThatIsOnlyUsedHasTheSameBitsAndFollowsEachBind) {
  Result<model::Network> network = ParseNetwork(R"(
    name: "n" input { channels: 8 height: 24 width: 24 }
    layers { name: "conv1" convolution { outputs: 16 kernel: 3 pad: 1 } }
    layers { name: "conv2" convolution { outputs: 16 kernel: 3 pad: 1 } }
    layers { name: "fc" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })",
                                                "n");
  ASSERT_TRUE(network.ok());
  TrainedNet trained(*network, 16);
  TrainedNet used(*network, 16);
  const NetSamples samples(*trained.net, 17);
  for (const float factor : {1.0f, 0.5f}) {
    for (TrainedNet* net : {&trained, &used}) {
      for (float& weight : net->weights) weight *= factor;
    }
    ASSERT_TRUE(used.net->Bind(used.layout, used.weights.data(), nullptr).ok());
    for (const Numbers& batch :
         {samples.Slice(0, 16), samples.Slice(16, 1), samples.Slice(0, 16)}) {
      EXPECT_EQ(used.Evaluate(batch).loss_sum, trained.Evaluate(batch).loss_sum);
    }
  }
  ASSERT_TRUE(used.net->Bind(used.layout, used.weights.data(), used.gradients.data()).ok());
  EXPECT_EQ(used.Step(samples.Slice(0, 16)).loss_sum, trained.Step(samples.Slice(0, 16)).loss_sum);
  EXPECT_EQ(used.gradients, trained.gradients);
}

TEST(NetTest, OptionsOutOfRangeAreRefused) {
  const auto backend = MakeCpuBackend(1);
  EXPECT_FALSE(Net::Make(SmallNetwork(), 0, backend.get()).ok());
}

}  // namespace
}  // namespace kumo
