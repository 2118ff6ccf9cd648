// Targets of a net, in every form that samples have them: classes, shares, bytes, numbers, lists.
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/detection/boxes.h"
#include "models/net.h"
#include "models/network.h"
#include "tests/models/branched_network.h"
#include "tests/models/trained_net.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A network that has been asked about classes may be asked about shares, and again about classes.
TEST(NetTargetsTest, SharesThatAreAllOfOneClassAreThatClass) {
  TrainedNet net(BranchedNetwork(), 6);
  const NetSamples samples(*net.net, 6);
  const LossSums expected = net.Step(samples.Slice(0, 6));
  const std::vector<float> gradients = net.gradients;
  const std::vector<float> weights = net.weights;
  Fields fields = net.net->takes();
  fields[0].type = NumberType::kFloat32;
  fields[1] = {kLabelField, NumberType::kFloat32, {10}};
  std::vector<float> shares(60);
  for (int n = 0; n < 6; ++n) shares[n * 10 + samples.labels[n]] = 1;
  const std::span<const std::byte> values[] = {std::as_bytes(std::span(samples.inputs)),
                                               std::as_bytes(std::span(shares))};
  ASSERT_TRUE(net.net->Connect(fields, {}).ok());
  ASSERT_TRUE(net.net->Load({6, values}).ok());
  net.backend->SetStep({});
  net.net->Train();
  const LossSums found = net.TakeSums();
  EXPECT_NEAR(found.loss_sum, expected.loss_sum, 1e-5);
  EXPECT_EQ(found.correct, expected.correct);
  for (size_t i = 0; i < gradients.size(); ++i) {
    ASSERT_NEAR(net.gradients[i], gradients[i], 1e-6f) << i;
  }
  shares[3] = 1.5f;
  EXPECT_THAT(net.net->Load({6, values}).message(), HasSubstr("sample 0 of the minibatch has 1.5"));
  fields[1].extents = {9};
  EXPECT_FALSE(net.net->Connect(fields, {}).ok());
  net.Step(samples.Slice(0, 6));
  EXPECT_EQ(net.gradients, gradients);
}

// Objects in lists, on every way in.
TEST(NetTargetsTest, ListsOfObjectsAreTakenOrRefusedByTheirLengths) {
  const model::Network network = ParseNetwork(R"(
    name: "detector"
    input { channels: 3 height: 8 width: 8 }
    layers { name: "offsets" inputs: "input" convolution { outputs: 16 kernel: 3 pad: 1 } }
    layers { name: "scores" inputs: "input" convolution { outputs: 12 kernel: 3 pad: 1 } }
    layers { name: "loss" inputs: "offsets" inputs: "scores"
             multibox { classes: 2 maps { step: 1 size: 3 next_size: 5 ratios: 2 } } })",
                                              "detector")
                                     .value();
  TrainedNet net(network, 2);
  Fields fields = net.net->takes();
  EXPECT_EQ(fields[1], (Field{kClassesField, NumberType::kInt32, {0}, FieldKind::kNumbers, true}));
  EXPECT_EQ(fields[2],
            (Field{kBoxesField, NumberType::kFloat32, {0, 4}, FieldKind::kNumbers, true}));
  fields[0].type = NumberType::kFloat32;
  const auto refusal = [&](const Fields& of) { return net.net->Connect(of, {}).message(); };
  Fields other = fields;
  other[1].extents = {3};
  other[2].extents = {3, 5};
  EXPECT_THAT(refusal(other), HasSubstr("of 3x4, but in the samples it is 3x5"));
  other = fields;
  other[1].list = false;
  EXPECT_THAT(refusal(other), HasSubstr("as a list, but in the samples it is an array"));
  EXPECT_THAT(refusal(fields), HasSubstr("room for no entry"));
  fields[1].extents = {3};
  fields[2].extents = {3, 4};
  ASSERT_TRUE(net.net->Connect(fields, {}).ok());
  const std::vector<float> inputs(2 * 192, 0.5f);
  std::vector<int32_t> classes = {1, 0, 9, 1, 7, 7};  // behind the ends of the lists anything
  const std::vector<Box> boxes(6, Box{1, 1, 5, 4});
  std::vector<int32_t> counts = {2, 1};
  const std::span<const std::byte> values[] = {std::as_bytes(std::span(inputs)),
                                               std::as_bytes(std::span(classes)),
                                               std::as_bytes(std::span(boxes))};
  const auto load = [&] {
    const std::span<const int32_t> lengths[] = {{}, counts, counts};
    return net.net->Load({2, values, lengths});
  };
  ASSERT_TRUE(load().ok()) << load().message();
  net.backend->SetStep({});
  net.net->Train();
  EXPECT_GT(net.net->TakeSums().value()[0], 0);
  classes[3] = 2;
  EXPECT_THAT(load().message(),
              HasSubstr("classes 2 of sample 1 of the minibatch is outside the 2"));
  classes[3] = 1;
  counts = {2, 4};
  EXPECT_THAT(load().message(), HasSubstr("at most 3 entries in a sample, not 4"));
  counts = {2};
  EXPECT_THAT(load().message(), HasSubstr("has 2 lengths, not 1"));
  EXPECT_THAT(net.net->Load({2, values}).message(), HasSubstr("has 2 lengths, not 0"));
}

// A mask in bytes is a target of classes.
TEST(NetTargetsTest, BytesAreTakenAsClasses) {
  const model::Network network = ParseNetwork(R"(
    name: "segments"
    input { channels: 1 height: 2 width: 3 }
    layers { name: "scores" convolution { outputs: 3 kernel: 1 } }
    layers { name: "loss" targets: "mask" softmax_cross_entropy {} })",
                                              "segments")
                                     .value();
  TrainedNet net(network, 1);
  Fields fields = net.net->takes();
  EXPECT_EQ(fields[1], (Field{"mask", NumberType::kInt32, {2, 3}}));
  const std::vector<uint8_t> image = {10, 20, 30, 40, 50, 60};
  std::vector<uint8_t> bytes = {0, 1, 2, 0, 1, 2};
  const std::vector<int32_t> integers = {0, 1, 2, 0, 1, 2};
  std::vector<double> sums[2];
  for (const bool as_bytes : {false, true}) {
    fields[1].type = as_bytes ? NumberType::kUint8 : NumberType::kInt32;
    ASSERT_TRUE(net.net->Connect(fields, {}).ok());
    const std::span<const std::byte> values[] = {
        std::as_bytes(std::span(image)),
        as_bytes ? std::as_bytes(std::span(bytes)) : std::as_bytes(std::span(integers))};
    ASSERT_TRUE(net.net->Load({1, values}).ok());
    net.net->Evaluate();
    sums[as_bytes ? 1 : 0] = net.net->TakeSums().value();
  }
  EXPECT_EQ(sums[0], sums[1]);
  bytes[4] = 3;
  const std::span<const std::byte> values[] = {std::as_bytes(std::span(image)),
                                               std::as_bytes(std::span(bytes))};
  EXPECT_THAT(net.net->Load({1, values}).message(),
              AllOf(HasSubstr("outside the 3 classes"), Not(HasSubstr("ignored_label"))));
  bytes[4] = 255;
  EXPECT_THAT(net.net->Load({1, values}).message(),
              AllOf(HasSubstr("mask 255 of sample 0 of the minibatch is outside the 3 classes"),
                    HasSubstr("write softmax_cross_entropy { ignored_label: 255 } in layer loss")));
}

// Numbers as labels, on every way in and out.
TEST(NetTargetsTest, ANetworkOfNumbersLearnsThem) {
  const model::Network network = ParseNetwork(R"(
    name: "line" outputs: "fc" outputs: "mean"
    input { channels: 3 height: 4 width: 4 }
    layers { name: "mean" global_average_pooling {} }
    layers { name: "fc" fully_connected { outputs: 2 } }
    layers { name: "loss" mean_squared_error {} })",
                                              "line")
                                     .value();
  TrainedNet net(network, 32);
  EXPECT_EQ(net.net->classes(), 0);
  Rng rng(5, RngPurpose::kTest);
  std::vector<float> inputs(32 * 48), labels, means;
  for (float& x : inputs) x = rng.NextUniform(-1, 1);
  for (int n = 0; n < 32; ++n) {
    for (int c = 0; c < 3; ++c) {
      means.push_back(std::accumulate(inputs.begin() + n * 48 + c * 16,
                                      inputs.begin() + n * 48 + c * 16 + 16, 0.0f) /
                      16);
    }
    const float* const mean = means.data() + n * 3;
    labels.insert(labels.end(), {3 * mean[0] - mean[1] + 1, mean[2] * 2 - 0.5f});
  }
  Fields fields = net.net->takes();
  EXPECT_EQ(fields[1], (Field{kLabelField, NumberType::kFloat32, {2}}));
  fields[0].type = NumberType::kFloat32;
  ASSERT_TRUE(net.net->Connect(fields, {}).ok());
  const std::span<const std::byte> values[] = {std::as_bytes(std::span(inputs)),
                                               std::as_bytes(std::span(labels))};
  std::vector<double> sums;
  for (int step = 0; step < 2000; ++step) {
    ASSERT_TRUE(net.net->Load({32, values}).ok());
    net.backend->SetStep({});
    net.net->Train();
    sums = net.net->TakeSums().value();
    net.Descend(1.0f);
  }
  EXPECT_LT(sums[0] / 32, 1e-5);
  EXPECT_LT(sums[1] / 32, 4e-3) << "the mean absolute error";
  std::vector<float> found(64), pooled(96);
  ASSERT_TRUE(net.net->Predict(0, found).ok());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], labels[i], 0.02f);
  ASSERT_TRUE(net.net->Predict(1, pooled).ok());
  for (size_t i = 0; i < pooled.size(); ++i) EXPECT_NEAR(pooled[i], means[i], 1e-5f);
}

}  // namespace
}  // namespace kumo
