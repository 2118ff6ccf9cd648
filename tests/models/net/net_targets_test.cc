// Targets of a net, in every form that samples have them: classes, shares, bytes, numbers, lists.
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/detection/boxes.h"
#include "models/net/net.h"
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

// A picture is a target of numbers, by the formula of its field.
TEST(NetTargetsTest, APictureIsTakenAsNumbersByItsFormula) {
  const auto parse = [](const char* loss) {
    return ParseNetwork(std::string(R"(
      name: "colours"
      input { name: "grey" channels: 1 height: 2 width: 3 }
      layers { name: "colours" convolution { outputs: 2 kernel: 1 } }
      layers { name: "loss" targets: "colour" )") +
                            loss + " {} }",
                        "colours")
        .value();
  };
  const std::vector<uint8_t> grey = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120};
  std::vector<uint8_t> colour(24);
  for (size_t i = 0; i < colour.size(); ++i) colour[i] = static_cast<uint8_t>(3 * i * i);
  const PixelFormula plain = {.scale = 0.125f};
  const PixelFormula channels = {.mean = std::vector<float>(12, 7.3f), .scales = {0.1f, 0.3f}};
  for (const char* loss : {"mean_squared_error", "huber"}) {
    for (const PixelFormula& formula : {plain, channels}) {
      TrainedNet net(parse(loss), 2);
      const Fields pictures = {{"colour", NumberType::kUint8, {2, 2, 3}, FieldKind::kPicture},
                               {"grey", NumberType::kUint8, {1, 2, 3}, FieldKind::kPicture}};
      Fields numbers = pictures;
      numbers[0].type = NumberType::kFloat32;
      std::vector<float> scaled(colour.size());
      for (size_t i = 0; i < scaled.size(); ++i) {
        const auto pixel = static_cast<float>(colour[i]);
        scaled[i] =
            formula.mean.empty() ? 0.125f * pixel : formula.scale_of(i / 6 % 2) * (pixel - 7.3f);
      }
      std::vector<double> sums[2];
      std::vector<float> gradients[2];
      for (const bool as_bytes : {false, true}) {
        ASSERT_TRUE(
            net.net->Connect(as_bytes ? pictures : numbers, std::array{formula, plain}).ok());
        const std::span<const std::byte> values[] = {
            as_bytes ? std::as_bytes(std::span(colour)) : std::as_bytes(std::span(scaled)),
            std::as_bytes(std::span(grey))};
        ASSERT_TRUE(net.net->Load({2, values}).ok());
        net.backend->SetStep({});
        net.net->Train();
        sums[as_bytes ? 1 : 0] = net.net->TakeSums().value();
        gradients[as_bytes ? 1 : 0] = net.gradients;
      }
      EXPECT_EQ(sums[0], sums[1]);
      EXPECT_EQ(gradients[0], gradients[1]);
    }
  }
}

TEST(NetTargetsTest, APictureOfAnotherShapeOrRangeAndAMaskAreRefusedAsNumbers) {
  const auto parse = [](const char* loss) {
    return ParseNetwork(std::string(R"(
      name: "itself"
      input { channels: 1 height: 2 width: 3 }
      layers { name: "again" convolution { outputs: 1 kernel: 1 } }
      layers { name: "loss" targets: "image" )") +
                            loss + " {} }",
                        "itself")
        .value();
  };
  TrainedNet squared(parse("mean_squared_error"), 1);
  Fields fields = {{"image", NumberType::kUint8, {1, 2, 3}, FieldKind::kPicture}};
  EXPECT_TRUE(squared.net->Connect(fields, {}).ok());
  TrainedNet entropy(parse("binary_cross_entropy"), 1);
  const std::vector<uint8_t> image = {0, 1, 0, 2, 1, 0};
  const std::span<const std::byte> values[] = {std::as_bytes(std::span(image))};
  ASSERT_TRUE(entropy.net->Connect(fields, std::array{PixelFormula{.scale = 0.5f}}).ok());
  EXPECT_TRUE(entropy.net->Load({1, values}).ok());
  ASSERT_TRUE(entropy.net->Connect(fields, {}).ok());
  EXPECT_THAT(
      entropy.net->Load({1, values}).message(),
      HasSubstr("field \"image\" is of numbers from 0 to 1: sample 0 of the minibatch has 2"));
  const model::Network network = ParseNetwork(R"(
      name: "other"
      input { channels: 1 height: 2 width: 3 }
      layers { name: "numbers" convolution { outputs: 1 kernel: 1 } }
      layers { name: "loss" targets: "other" mean_squared_error {} })",
                                              "other")
                                     .value();
  TrainedNet net(network, 1);
  fields.push_back({"other", NumberType::kUint8, {3, 2, 3}, FieldKind::kPicture});
  EXPECT_THAT(net.net->Connect(fields, {}).message(),
              HasSubstr("takes a field \"other\" of 1x2x3, but in the samples it is 3x2x3"));
  fields[1] = {"other", NumberType::kUint8, {1, 2, 3}, FieldKind::kMask};
  EXPECT_THAT(net.net->Connect(fields, {}).message(),
              HasSubstr("takes numbers as field \"other\", the samples have a mask, whose pixels "
                        "are classes; losses of masks are softmax_cross_entropy and dice"));
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
