// A small detector that learns pictures by heart.
#include "models/net/detector.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/network.h"

namespace kumo {
namespace {

constexpr int kPictures = 8;
constexpr int64_t kSide = 32;
constexpr int64_t kRoom = 2;

constexpr char kNetwork[] = R"(
  name: "detector"
  input { channels: 2 height: 32 width: 32 }
  layers { name: "conv1" convolution { outputs: 8 kernel: 3 stride: 2 pad: 1 weight { he_normal {} } } }
  layers { name: "relu1" relu {} }
  layers { name: "conv2" convolution { outputs: 16 kernel: 3 stride: 2 pad: 1 weight { he_normal {} } } }
  layers { name: "relu2" relu {} }
  layers { name: "offsets" inputs: "relu2" convolution { outputs: 16 kernel: 3 pad: 1 } }
  layers { name: "scores" inputs: "relu2" convolution { outputs: 12 kernel: 3 pad: 1 } }
  layers { name: "loss" inputs: "offsets" inputs: "scores"
           multibox { classes: 2 maps { step: 4 size: 8 next_size: 14 ratios: 2 } } })";

// Rectangles on a dark ground; the channel that is bright is the class.
struct Pictures {
  std::vector<float> images = std::vector<float>(kPictures * 2 * kSide * kSide);
  std::vector<int32_t> counts;
  std::vector<int32_t> classes = std::vector<int32_t>(kPictures * kRoom);
  std::vector<Box> boxes = std::vector<Box>(kPictures * kRoom);

  Pictures() {
    Rng rng(1, RngPurpose::kTest);
    for (int n = 0; n < kPictures; ++n) {
      counts.push_back(n % (kRoom + 1));
      for (int o = 0; o < counts[n]; ++o) {
        const auto c = static_cast<int32_t>(rng.NextBelow(2));
        // The left and the right half have one each.
        const auto left = static_cast<int64_t>(16 * o + rng.NextBelow(5));
        const auto top = static_cast<int64_t>(rng.NextBelow(20));
        const auto width = static_cast<int64_t>(7 + rng.NextBelow(5));
        const auto height = static_cast<int64_t>(7 + rng.NextBelow(5));
        classes[n * kRoom + o] = c;
        boxes[n * kRoom + o] = {static_cast<float>(left), static_cast<float>(top),
                                static_cast<float>(left + width), static_cast<float>(top + height)};
        for (int64_t y = top; y < top + height; ++y) {
          for (int64_t x = left; x < left + width; ++x) {
            images[((n * 2 + c) * kSide + y) * kSide + x] = 1;
          }
        }
      }
    }
  }
};

TEST(Detector, PicturesThatWereLearntByHeartAreFoundAgain) {
  const auto backend = MakeCpuBackend(1);
  const auto net =
      Net::Make(ParseNetwork(kNetwork, "detector").value(), kPictures, backend.get()).value();
  const ParameterLayout layout = ParameterLayout::Make(net->tensors()).value();
  std::vector<float> weights(layout.size()), gradients(layout.size()), speed(layout.size());
  ASSERT_TRUE(net->InitialWeights(1, layout, weights).ok());
  ASSERT_TRUE(net->Bind(layout, weights.data(), gradients.data()).ok());
  Fields fields = net->takes();
  fields[0].type = NumberType::kFloat32;
  for (const int list : {1, 2}) fields[list].extents[0] = kRoom;
  ASSERT_TRUE(net->Connect(fields, {}).ok());
  const Pictures pictures;
  const std::span<const std::byte> values[] = {std::as_bytes(std::span(pictures.images)),
                                               std::as_bytes(std::span(pictures.classes)),
                                               std::as_bytes(std::span(pictures.boxes))};
  const std::span<const int32_t> counts[] = {{}, pictures.counts, pictures.counts};
  const SampleBatch batch = {kPictures, values, counts};
  ASSERT_TRUE(net->Load(batch).ok());
  auto detector = Detector::Of(net.get());
  ASSERT_TRUE(detector);
  // As many boxes as the loss divides by, which depend on the objects alone.
  net->Evaluate();
  const auto sums_of_loss = net->TakeSums();
  ASSERT_TRUE(sums_of_loss.ok());
  EXPECT_GT(detector->Positives(fields, batch), 8);
  EXPECT_EQ(static_cast<double>(detector->Positives(fields, batch)),
            (*sums_of_loss)[MultiboxSpec::kPositivesSum]);
  const auto evaluate = [&] {
    net->Evaluate();
    DetectionCounts found;
    const auto samples = detector->Compare(fields, batch);
    EXPECT_TRUE(samples.ok());
    for (const Detector::Compared& one : *samples) found.Add(one.found, one.objects);
    return found;
  };
  EXPECT_LT(evaluate().MeanAveragePrecision(PrecisionFormula::kArea), 0.5) << "before training";
  for (int step = 0; step < 400; ++step) {
    backend->SetStep({});
    net->Train();
    for (size_t i = 0; i < weights.size(); ++i) {
      speed[i] = 0.9f * speed[i] - 0.01f * gradients[i];
      weights[i] += speed[i];
    }
  }
  const DetectionCounts found = evaluate();
  EXPECT_EQ(found.Classes(), (std::vector<int32_t>{0, 1}));
  EXPECT_GT(found.MeanAveragePrecision(PrecisionFormula::kArea), 0.95);
  EXPECT_GT(found.MeanAveragePrecision(PrecisionFormula::kElevenPoints), 0.95);
  // Settled, the counts are figures of the network's metrics.
  MetricSums sums = {kPictures, net->TakeSums().value(), found};
  EXPECT_FALSE(MetricList::FigureOf(*net->metrics().Find("map"), sums)) << "of training";
  net->metrics().Settle(&sums);
  EXPECT_EQ(MetricList::FigureOf(*net->metrics().Find("map"), sums),
            found.MeanAveragePrecision(PrecisionFormula::kArea));
  EXPECT_TRUE(sums.detections.empty());
}

TEST(Detector, ANetworkOfClassesIsNone) {
  const auto backend = MakeCpuBackend(1);
  const auto net = Net::Make(ParseNetwork(R"(
    name: "classes" input { channels: 1 height: 2 width: 2 }
    layers { name: "scores" fully_connected { outputs: 3 } }
    layers { name: "loss" softmax_cross_entropy {} })",
                                          "classes")
                                 .value(),
                             1, backend.get())
                       .value();
  EXPECT_FALSE(Detector::Of(net.get()));
}

}  // namespace
}  // namespace kumo
