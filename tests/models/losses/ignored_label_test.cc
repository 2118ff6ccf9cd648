// Labels that softmax_cross_entropy ignores, on every backend.
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

// A position that is ignored is as if the sample did not have it.
TEST(SoftmaxCrossEntropyTest, IgnoredPositionsCountNothing) {
  constexpr int kBatch = 4, kClasses = 5, kLength = 12;
  Rng rng(23, RngPurpose::kTest);
  const Shape shape = {kClasses, kLength};
  const std::vector<float> scores = RandomNumbers(kBatch * shape.size(), &rng);
  std::vector<int32_t> labels = SomeClasses(int64_t{kBatch} * kLength, kClasses, 255, &rng);
  labels[0] = 255;
  std::fill(labels.begin() + 2 * kLength, labels.begin() + 3 * kLength, 255);  // all of sample 2
  for (const Setting& setting : Settings()) {
    SoftmaxCrossEntropySpec spec = {shape, 0.1f, {2}};
    spec.class_weights = {1, 2, 0.5f, 1, 3};
    spec.ignored = 255;
    const FoundLoss found = RunLoss(setting, spec, kBatch, scores, labels);
    std::vector<double> sums(found.sums.size());
    std::vector<float> gradient(scores.size());
    for (int n = 0; n < kBatch; ++n) {
      std::vector<int64_t> kept;
      for (int p = 0; p < kLength; ++p) {
        if (labels[n * kLength + p] != 255) kept.push_back(p);
      }
      if (kept.empty()) continue;
      spec.scores = {kClasses, std::ssize(kept)};
      spec.ignored = -1;
      std::vector<float> alone;
      std::vector<int32_t> alone_labels;
      for (int c = 0; c < kClasses; ++c) {
        for (const int64_t p : kept) alone.push_back(scores[(n * kClasses + c) * kLength + p]);
      }
      for (const int64_t p : kept) alone_labels.push_back(labels[n * kLength + p]);
      const FoundLoss of_sample = RunLoss(setting, spec, 1, alone, alone_labels);
      for (size_t s = 0; s < sums.size(); ++s) sums[s] += of_sample.sums[s];
      for (size_t i = 0; i < alone.size(); ++i) {
        const int64_t c = static_cast<int64_t>(i) / std::ssize(kept);
        const int64_t p = kept[static_cast<int64_t>(i) % std::ssize(kept)];
        gradient[(n * kClasses + c) * kLength + p] = of_sample.gradient[i] / kBatch;
      }
    }
    for (size_t s = 0; s < sums.size(); ++s) {
      EXPECT_NEAR(found.sums[s], sums[s], 1e-5) << setting.name << ", sum " << s;
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      ASSERT_NEAR(found.gradient[i], gradient[i], 1e-7f) << setting.name << ", score " << i;
    }
    spec.scores = shape;
    spec.ignored = -1;
    std::vector<int32_t> all(labels.size());
    const FoundLoss plain = RunLoss(setting, spec, kBatch, scores, all);
    spec.ignored = 255;
    EXPECT_EQ(RunLoss(setting, spec, kBatch, scores, all).gradient, plain.gradient)
        << "without such labels no bit changes; " << setting.name;
  }
}

// A net takes the ignored label beside its classes, and no other.
TEST(IgnoredLabelTest, ANetTakesItBesideItsClasses) {
  const auto network = ParseNetwork(
      "name: 'n' input { channels: 1 height: 1 width: 2 } "
      "layers { name: 'scores' convolution { outputs: 3 kernel: 1 } } "
      "layers { name: 'loss' softmax_cross_entropy { ignored_label: 255 } }",
      "n");
  const auto backend = MakeCpuBackend(1);
  const auto net = Net::Make(*network, 2, backend.get()).value();
  const std::vector<float> inputs = {1, 2, 3, 4};
  const auto load = [&](const std::vector<int32_t>& labels) {
    return Numbers{2, inputs, labels}.LoadInto(net.get());
  };
  EXPECT_TRUE(load({0, 255, 255, 2}).ok());
  EXPECT_THAT(load({0, 255, 3, 2}).message(), HasSubstr("label 3 of sample 1"));
  EXPECT_THAT(load({0, -1, 0, 2}).message(), HasSubstr("label -1 of sample 0"));
}

TEST(IgnoredLabelTest, IsNotNegative) {
  EXPECT_EQ(RefusalOfLoss("softmax_cross_entropy { ignored_label: 0 }"), "");
  EXPECT_THAT(RefusalOfLoss("softmax_cross_entropy { ignored_label: -3 }"),
              HasSubstr("ignored_label must be 0 to"));
}

}  // namespace
}  // namespace kumo
