#include "common/job/network_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kInput[] = "name: \"n\" input { channels: 1 height: 4 width: 4 } ";
constexpr char kA[] = "layers { name: \"a\" relu {} } ";
constexpr char kB[] = "layers { name: \"b\" max_pooling { kernel: 2 } } ";
constexpr char kLoss[] = "layers { name: \"loss\" softmax_cross_entropy {} } ";

std::vector<std::string> Changes(const std::string& then, const std::string& now,
                                 NetworkUse use = NetworkUse::kTraining) {
  std::vector<std::string> lines;
  for (const SettingChange& change : NetworkChanges(then, now, use)) {
    lines.push_back(DescribeChange(change));
  }
  return lines;
}

TEST(NetworkChangesTest, TheSameNetworkMayBeWrittenOtherwise) {
  const std::string network = std::string(kInput) + kA + kB + kLoss;
  EXPECT_THAT(Changes(network, network), ElementsAre());
  EXPECT_THAT(Changes(network, "# a comment\n  " + network), ElementsAre());
  std::string renamed = network;
  renamed.replace(renamed.find("\"n\""), 3, "\"another name\"");
  EXPECT_THAT(Changes(network, renamed), ElementsAre());
  EXPECT_THAT(Changes("", network), ElementsAre());
  EXPECT_THAT(Changes(network, ""), ElementsAre());
}

TEST(NetworkChangesTest, EachLayerThatDiffersIsNamed) {
  const std::string then = std::string(kInput) + kA + kB + kLoss;
  EXPECT_THAT(Changes(then, std::string(kInput) + "layers { name: \"a\" tanh {} } " + kB + kLoss),
              ElementsAre("layer a relu { } -> tanh { }"));
  EXPECT_THAT(Changes(then, std::string(kInput) + kB + kLoss +
                                "layers { name: \"c\" inputs: \"b\" dropout { ratio: 0.9 } }"),
              ElementsAre("layer a relu { } -> (none)",
                          "layer c (none) -> inputs: \"b\" dropout { ratio: 0.9 }"));
  EXPECT_THAT(Changes(then, std::string(kInput) + kB + kA + kLoss),
              ElementsAre("network its layers in one order -> in another"));
  EXPECT_THAT(Changes(then, "name: \"n\" input { channels: 2 height: 4 width: 4 } " +
                                std::string(kA) + kB + kLoss),
              ElementsAre(HasSubstr("network input { channels: 1")));
}

TEST(NetworkChangesTest, WhatATrainedNetworkDoesNotDependOnDoesNotCount) {
  const std::string then =
      std::string(kInput) +
      "layers { name: \"fc\" fully_connected { outputs: 3 weight { he_normal {} } } }" +
      "layers { name: \"drop\" dropout { ratio: 0.5 } }" + kLoss;
  const std::string now =
      std::string(kInput) + "outputs: \"fc\"" +
      "layers { name: \"fc\" weight_decay_factor: 2 fully_connected { outputs: 3 } }" +
      "layers { name: \"drop\" dropout { ratio: 0.25 } }" +
      "layers { name: \"loss\" loss_weight: 2 softmax_cross_entropy { top: 2 } }";
  EXPECT_THAT(Changes(then, now, NetworkUse::kUse), ElementsAre());
  EXPECT_THAT(Changes(then, now, NetworkUse::kJob),
              testing::Contains(HasSubstr("layer fc fully_connected { outputs: 3 weight")));
  EXPECT_THAT(Changes(then, now),
              ElementsAre("layer fc fully_connected { outputs: 3 } -> weight_decay_factor: 2 "
                          "fully_connected { outputs: 3 }",
                          "layer drop dropout { ratio: 0.5 } -> dropout { ratio: 0.25 }",
                          HasSubstr("layer loss ")));
}

TEST(NetworkChangesTest, OfALayerOnlyTheFieldsOfTrainingDoNotCountForItsUse) {
  const auto changes = [](const std::string& then, const std::string& now) {
    const auto network = [](const std::string& kind) {
      return std::string(kInput) + "layers { name: \"a\" " + kind + " }";
    };
    return Changes(network(then), network(now), NetworkUse::kUse);
  };
  EXPECT_THAT(
      changes("multibox { classes: 3 }", "multibox { classes: 3 negatives: 2 threshold: 0.4 }"),
      ElementsAre());
  EXPECT_THAT(changes("multibox { classes: 3 maps { size: 30 } }",
                      "multibox { classes: 3 maps { size: 31 } }"),
              ElementsAre(HasSubstr("size: 31")));
  EXPECT_THAT(changes("batch_normalisation {}", "batch_normalisation { momentum: 0.99 }"),
              ElementsAre());
  EXPECT_THAT(changes("batch_normalisation {}", "batch_normalisation { epsilon: 0.001 }"),
              ElementsAre(HasSubstr("epsilon")));
  EXPECT_THAT(changes("attention { heads: 2 dropout: 0.5 }", "attention { heads: 2 }"),
              ElementsAre());
  EXPECT_THAT(changes("attention { heads: 2 }", "attention { heads: 4 }"),
              ElementsAre(HasSubstr("heads: 4")));
  EXPECT_THAT(changes("huber { delta: 2 }", "mean_squared_error {}"),
              ElementsAre(HasSubstr("huber")));
}

TEST(NetworkChangesTest, OfLongTextsWhatDiffersIsShown) {
  std::string inputs;
  for (int i = 0; i < 20; ++i) inputs += "inputs: \"layer" + std::to_string(i) + "\" ";
  const auto network = [&](const char* kind) {
    return std::string(kInput) + "layers { name: \"x\" " + inputs + kind + " }";
  };
  EXPECT_THAT(Changes(network("add {}"), network("multiply {}")),
              ElementsAre(testing::AllOf(HasSubstr("add { } -> ..."), HasSubstr("multiply { }"))));
}

TEST(NetworkChangesTest, ALongListEndsAndWhatIsNoNetworkIsSaid) {
  std::string then = kInput;
  std::string now = kInput;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "layers { name: \"l" + std::to_string(i) + "\" ";
    then += name + "relu {} } ";
    now += name + "tanh {} } ";
  }
  const std::vector<std::string> changes = Changes(then, now);
  ASSERT_EQ(changes.size(), 6u);
  EXPECT_EQ(changes.back(), "layers 4 more -> others");
  EXPECT_THAT(Changes(then, "layers { nonsense"), ElementsAre(HasSubstr("cannot read")));
  const std::string bell = "layers { name: \"\\007\" relu {} }";
  for (const std::string& line : Changes(kInput + bell, kInput)) {
    EXPECT_EQ(line.find('\a'), std::string::npos);
  }
}

}  // namespace
}  // namespace kumo
