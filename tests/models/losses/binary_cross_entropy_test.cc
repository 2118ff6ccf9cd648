// Binary cross-entropy on every backend, beside its definition in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/net/net.h"
#include "models/network.h"
#include "tests/models/losses/loss_on_device.h"

namespace kumo {
namespace {

using testing::HasSubstr;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(BinaryCrossEntropyTest, LossGradientAndMetricsAreThoseOfTheDefinition) {
  Rng rng(21, RngPurpose::kTest);
  for (const Setting& setting : Settings()) {
    for (const auto& [batch, shape] :
         {std::pair(1, Shape{1}), {19, Shape{7}}, {33, Shape{3, 2, 5}}, {6, Shape{4, 90}}}) {
      for (const bool weighted : {false, true}) {
        BinaryCrossEntropySpec spec = {shape};
        spec.weight = 0.75f;
        const int64_t channels = shape.channels();
        for (int64_t c = 0; weighted && c < channels; ++c) {
          spec.class_weights.push_back(rng.NextUniform(0, 2));
          spec.positive_weights.push_back(rng.NextUniform(0, 5));
        }
        std::vector<float> scores = RandomNumbers(batch * shape.size(), &rng);
        scores[0] = 90.0f;  // must not overflow
        std::vector<float> labels;
        for (size_t i = 0; i < scores.size(); ++i) {
          const float any = rng.NextUniform();
          labels.push_back(i % 3 == 0 ? any : std::round(any));
        }
        for (int64_t i = 0; i < shape.size(); ++i) labels[i] = scores[i] > 0 ? 1.0f : 0.0f;
        const FoundLoss found = RunLoss(setting, spec, batch, scores, labels);
        double loss = 0, correct = 0, exact = 0;
        const auto numbers = static_cast<double>(shape.size());
        for (int n = 0; n < batch; ++n) {
          bool all = true;
          for (int64_t i = n * shape.size(); i < (n + 1) * shape.size(); ++i) {
            const int64_t c = i % shape.size() / shape.plane();
            const double w = weighted ? static_cast<double>(spec.class_weights[c]) : 1;
            const double p = weighted ? static_cast<double>(spec.positive_weights[c]) : 1;
            const auto s = static_cast<double>(scores[i]);
            const auto y = static_cast<double>(labels[i]);
            loss += w * (p * y * std::log1p(std::exp(-s)) + (1 - y) * std::log1p(std::exp(s))) /
                    numbers;
            const bool right = (s > 0) == (y > 0.5);
            correct += right ? 1 / numbers : 0;
            all = all && right;
            const double slope =
                0.75 * w * ((1 - y) * Sigmoid(s) - p * y * Sigmoid(-s)) / (numbers * batch);
            ASSERT_NEAR(found.gradient[i], slope, 1e-6) << setting.name;
          }
          exact += all ? 1 : 0;
        }
        EXPECT_NEAR(found.sums[BinaryCrossEntropySpec::kLossSum], loss, 1e-5 * (1 + loss));
        EXPECT_NEAR(found.sums[BinaryCrossEntropySpec::kCorrectSum], correct, 1e-5 * batch);
        EXPECT_EQ(found.sums[BinaryCrossEntropySpec::kExactSum], exact) << setting.name;
        EXPECT_GE(exact, 1);
      }
    }
  }
}

TEST(BinaryCrossEntropyTest, ANetRefusesLabelsBeyondZeroAndOne) {
  const auto network = ParseNetwork(
      "name: 'n' input { extents: 2 } "
      "layers { name: 'scores' fully_connected { outputs: 3 } } "
      "layers { name: 'loss' binary_cross_entropy {} }",
      "n");
  const auto backend = MakeCpuBackend(1);
  const auto net = Net::Make(*network, 2, backend.get()).value();
  const std::vector<float> inputs = {1, 2, 3, 4};
  const auto load = [&](const std::vector<int32_t>& labels) {
    return Numbers{2, inputs, labels}.LoadInto(net.get());
  };
  EXPECT_TRUE(load({0, 1}).ok());
  EXPECT_THAT(
      load({1, 2}).message(),
      HasSubstr("field \"label\" is of numbers from 0 to 1: sample 1 of the minibatch has 2"));
}

TEST(BinaryCrossEntropyTest, WeightsOutOfRangeAreNamed) {
  EXPECT_EQ(RefusalOfLoss("binary_cross_entropy { positive_weights: [1, 2, 3] }"), "");
  EXPECT_THAT(RefusalOfLoss("binary_cross_entropy { class_weights: [1, 2] }"),
              HasSubstr("class_weights must have one value for each of the 3 channels, has 2"));
  EXPECT_THAT(RefusalOfLoss("binary_cross_entropy { positive_weights: [1, -2, 1] }"),
              HasSubstr("but channel 1 has -2"));
  EXPECT_THAT(RefusalOfLoss("binary_cross_entropy { class_weights: [0, 0, 0] }"),
              HasSubstr("must not all be 0"));
}

}  // namespace
}  // namespace kumo
