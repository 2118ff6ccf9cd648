// The ways in which the CPU convolves: which one is taken, that each is the same sum, and how much
// rounding adds to it where products are saved.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/backend/cpu/layout.h"
#include "models/ops/convolution/cpu.h"
#include "tests/models/ops/layer_on_device.h"

namespace kumo {
namespace {

using cpu::ConvolutionWay;
using cpu::WayOf;

ConvolutionSpec Spec(const Shape& input, int outputs, int kernel, int stride = 1, int pad = 0) {
  ConvolutionSpec spec;
  spec.input = input;
  spec.outputs = outputs;
  spec.kernel_height = kernel;
  spec.kernel_width = kernel;
  spec.stride = stride;
  spec.pad = pad;
  return spec;
}

TEST(ConvolutionWaysTest, TheShapeTellsTheWay) {
  // LeNet's, whose bits do not change.
  EXPECT_EQ(WayOf(Spec({1, 28, 28}, 20, 5)), ConvolutionWay::kPlain);
  EXPECT_EQ(WayOf(Spec({20, 12, 12}, 50, 5)), ConvolutionWay::kPlain);
  // Pixels.
  EXPECT_EQ(WayOf(Spec({3, 32, 32}, 64, 3, 1, 1)), ConvolutionWay::kPlain);
  EXPECT_EQ(WayOf(Spec({64, 32, 32}, 64, 3, 1, 1)), ConvolutionWay::kMinimal);
  EXPECT_EQ(WayOf(Spec({16, 8, 8}, 16, 3, 1, 1)), ConvolutionWay::kMinimal);
  // Nearly all of a tile would be beyond the border.
  EXPECT_EQ(WayOf(Spec({64, 1, 1}, 64, 3, 1, 1)), ConvolutionWay::kPlain);
  EXPECT_EQ(WayOf(Spec({64, 32, 32}, 64, 3, 2, 1)), ConvolutionWay::kGathered);
  EXPECT_EQ(WayOf(Spec({64, 32, 32}, 256, 1)), ConvolutionWay::kGathered);
  ConvolutionSpec grouped = Spec({64, 32, 32}, 64, 3, 1, 1);
  grouped.groups = 2;
  EXPECT_EQ(WayOf(grouped), ConvolutionWay::kGrouped);
  ConvolutionSpec dilated = Spec({64, 32, 32}, 64, 3, 1, 2);
  dilated.dilation = 2;
  EXPECT_EQ(WayOf(dilated), ConvolutionWay::kGathered);
}

// A convolution of 3x3 over `channels`, padded with zeros.
class ThreeByThree {
 public:
  ThreeByThree(int64_t channels, int64_t size, int outputs, int threads, Isa isa = DetectIsa(),
               int pad = 1)
      : text_("name: \"l\" convolution { outputs: " + std::to_string(outputs) +
              " kernel: 3 pad: " + std::to_string(pad) + " no_bias: true }"),
        shape_{channels, size, size},
        outputs_(outputs),
        layer_({"", shape_, text_.c_str()},
               {"", [threads, isa] { return MakeCpuBackend(threads, isa); }}) {}

  LayerOnDevice& layer() { return layer_; }
  std::vector<float> RandomInput(int batch) const {
    Rng rng(8, RngPurpose::kTest);
    return RandomNumbers(batch * shape_.size(), &rng);
  }
  // The exact sum of result i of the batch.
  double Exact(const std::vector<float>& x, int64_t i) {
    const std::vector<float>& w = layer_.weights()[0];
    const int64_t size = shape_.height();
    const int64_t column = i % size;
    const int64_t row = i / size % size;
    const int64_t output = i / shape_.plane() % outputs_;
    const int64_t sample = i / shape_.plane() / outputs_;
    double sum = 0;
    for (int64_t c = 0; c < shape_.channels(); ++c) {
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t y = row + tap / 3 - 1;
        const int64_t at = column + tap % 3 - 1;
        if (y < 0 || y >= size || at < 0 || at >= size) continue;
        sum += static_cast<double>(w[(output * shape_.channels() + c) * 9 + tap]) *
               static_cast<double>(x[((sample * shape_.channels() + c) * size + y) * size + at]);
      }
    }
    return sum;
  }

 private:
  std::string text_;
  Shape shape_;
  int64_t outputs_;
  LayerOnDevice layer_;
};

// Of a minimal filtering, for each product of two numbers of at most 1: three units, where a plain
// sum may have one, and Lavin and Gray's points would have ten.
constexpr double kRounding = 3 * 0x1p-24;

TEST(ConvolutionWaysTest, WhatRoundingAddsToAMinimalFilteringIsBounded) {
  for (const int64_t channels : {8, 64, 512}) {
    ThreeByThree convolution(channels, 12, 16, 1);
    const std::vector<float> x = convolution.RandomInput(16);
    const std::vector<float> y = convolution.layer().Forward(x, 16, true);
    double worst = 0;
    for (size_t i = 0; i < y.size(); i += 7) {
      const double exact = convolution.Exact(x, static_cast<int64_t>(i));
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) - exact));
    }
    EXPECT_LT(worst, kRounding * 9 * static_cast<double>(channels)) << channels << " channels";
    EXPECT_GT(worst, 0);
  }
}

// A rounding error in the place of 0 would be multiplied by 1e5 where an l2_normalisation follows.
TEST(ConvolutionWaysTest, AWindowOfZerosGivesTheBias) {
  constexpr int64_t kChannels = 32, kSize = 13, kOutputs = 32;
  for (const int pad : {0, 1, 2}) {
    const std::string text =
        "name: \"l\" convolution { outputs: 32 kernel: 3 pad: " + std::to_string(pad) + " }";
    for (const Setting& setting : Settings()) {
      LayerOnDevice layer({"", {kChannels, kSize, kSize}, text.c_str()}, setting);
      const std::vector<float> bias = layer.weights()[1];
      for (const int batch : {1, 9, 33}) {
        // Zeros but for a part, which is another one in each sample; in every third all are random.
        Rng rng(8, RngPurpose::kTest);
        std::vector<float> x = RandomNumbers(batch * kChannels * kSize * kSize, &rng);
        const auto is_zero = [&](int64_t sample, int64_t row, int64_t column) {
          if (row < 0 || row >= kSize || column < 0 || column >= kSize) return true;
          return sample % 3 != 2 && (row < 5 + sample || column % 11 > 2 + sample % 4);
        };
        for (int64_t i = 0; i < std::ssize(x); ++i) {
          const int64_t row = i / kSize % kSize, sample = i / (kChannels * kSize * kSize);
          if (is_zero(sample, row, i % kSize)) x[i] = i % 2 == 0 ? 0.0f : -0.0f;
        }
        const std::vector<float> y = layer.Forward(x, batch, true);
        const int64_t size = kSize + 2 * pad - 2;
        int64_t windows = 0, wrong = 0, others = 0, others_with_bias = 0;
        for (int64_t i = 0; i < std::ssize(y); ++i) {
          const int64_t row = i / size % size - pad, column = i % size - pad;
          bool is_all_zero = true;
          for (int64_t tap = 0; tap < 9; ++tap) {
            is_all_zero &= is_zero(i / (kOutputs * size * size), row + tap / 3, column + tap % 3);
          }
          const float at_zeros = bias[i / (size * size) % kOutputs];
          const bool has_bias = y[i] == at_zeros;
          (is_all_zero ? windows : others) += 1;
          if (is_all_zero && !has_bias) ++wrong;
          if (!is_all_zero && has_bias) ++others_with_bias;
        }
        EXPECT_EQ(wrong, 0) << setting.name << ", " << batch << " samples, pad " << pad;
        EXPECT_GT(windows, 0);
        EXPECT_LE(others_with_bias, others / 1000) << "only by chance";
      }
    }
  }
}

TEST(ConvolutionWaysTest, ASamplesBitsDoNotDependOnTheOthersOfItsMinibatch) {
  ThreeByThree convolution(9, 10, 12, 1);
  const std::vector<float> x = convolution.RandomInput(40);
  const std::vector<float> all = convolution.layer().Forward(x, 40, true);
  for (const int batch : {33, 16, 9}) {
    const std::vector<float> some =
        convolution.layer().Forward({x.begin(), x.begin() + batch * 9 * 100}, batch, true);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << batch;
  }
}

// Of large planes few samples pay for a minimal filtering, too, which then takes no empty lanes
// along; the bits are those that they have among many.
TEST(ConvolutionWaysTest, FewSamplesOfLargePlanesHaveTheBitsThatTheyHaveAmongMany) {
  constexpr int64_t kSize = 27;  // the last tiles are half outside; columns fill no whole block
  constexpr int64_t kSample = 32 * kSize * kSize;
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    ThreeByThree many(32, kSize, 32, 1, isa);
    ThreeByThree few(32, kSize, 32, 1, isa);
    const std::vector<float> x = many.RandomInput(16);
    const std::vector<float> y = many.layer().Forward(x, 16, true);
    for (const int batch : {3, 4, 5, 8}) {
      ASSERT_TRUE(
          cpu::PaysByWinograd(Spec({32, kSize, kSize}, 32, 3, 1, 1), batch, cpu::FewLanes(batch)));
      const auto end = batch * kSample;
      EXPECT_EQ(few.layer().Forward({x.begin(), x.begin() + end}, batch, true),
                std::vector(y.begin(), y.begin() + end))
          << batch;
      // The others' gradients are zero, so that all is made of these.
      std::vector<float> grad = x;
      std::fill(grad.begin() + end, grad.end(), 0.0f);
      const std::vector<float> input_gradient = many.layer().Backward(grad, 16);
      EXPECT_EQ(few.layer().Backward({x.begin(), x.begin() + end}, batch),
                std::vector(input_gradient.begin(), input_gradient.begin() + end))
          << batch;
      const std::vector<float>& expected = many.layer().gradients()[0];
      const std::vector<float>& gradient = few.layer().gradients()[0];
      ASSERT_EQ(gradient.size(), expected.size());
      for (size_t i = 0; i < gradient.size(); ++i) {
        ASSERT_NEAR(gradient[i], expected[i], kRounding * batch * kSize * kSize) << batch;
      }
    }
  }
}

// One alone has no padding, unless another layer needs it. Rows of 7, 10 and 19 tiles: its tiles
// are transformed 4, 8 or 16 at a time, those at the border and the last ones of a row among them.
TEST(ConvolutionWaysTest, OneSampleOfManyChannelsHasTheBitsThatItHasAmongMany) {
  struct Case {
    int64_t size;
    int pad, threads;
  };
  constexpr int kChannels = 48;
  for (const auto& [size, pad, threads] :
       {Case{27, 1, 1}, {38, 1, 3}, {75, 1, 1}, {75, 0, 3}, {38, 2, 1}}) {
    const int64_t out = size + 2 * pad - 2;
    const int64_t sample = kChannels * size * size, out_sample = kChannels * out * out;
    ASSERT_TRUE(cpu::PaysByWinograd(Spec({kChannels, size, size}, kChannels, 3, 1, pad), 1, 1));
    for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
      if (isa > DetectIsa()) continue;
      const std::string which = std::to_string(size) + ", pad " + std::to_string(pad);
      ThreeByThree many(kChannels, size, kChannels, 1, isa, pad);
      ThreeByThree one(kChannels, size, kChannels, threads, isa, pad);
      const std::vector<float> x = many.RandomInput(3);
      const std::vector<float> first(x.begin(), x.begin() + sample);
      const std::vector<float> y = many.layer().Forward(x, 3, true);
      const std::vector<float> first_y(y.begin(), y.begin() + out_sample);
      EXPECT_TRUE(one.layer().Forward(first, 1, true) == first_y) << which;
      std::vector<float> grad = y;
      std::fill(grad.begin() + out_sample, grad.end(), 0.0f);
      const std::vector<float> input_gradient = many.layer().Backward(grad, 3);
      EXPECT_TRUE(one.layer().Backward(first_y, 1) ==
                  std::vector(input_gradient.begin(), input_gradient.begin() + sample))
          << which;
      const std::vector<float>& expected = many.layer().gradients()[0];
      const std::vector<float>& gradient = one.layer().gradients()[0];
      const double largest = std::abs(
          *std::ranges::max_element(first_y, {}, [](float number) { return std::abs(number); }));
      for (size_t i = 0; i < gradient.size(); ++i) {
        ASSERT_NEAR(gradient[i], expected[i], kRounding * largest * static_cast<double>(out * out))
            << which << ", " << i;
      }
    }
  }
}

// In a net of which another layer knows rows of 16 alone.
TEST(ConvolutionWaysTest, FewSamplesHaveTheSameBitsInWholeRows) {
  constexpr int64_t kSize = 27;
  const char* const text =
      R"(name: "l" convolution { outputs: 32 kernel: 3 pad: 1 no_bias: true })";
  const LayerCase layer_case = {"", {32, kSize, kSize}, text};
  LayerOnDevice few(layer_case, {"", [] { return MakeCpuBackend(1, DetectIsa()); }});
  LayerOnDevice rows(
      layer_case, {"", [] { return CpuBackendFor(GroupNormalisationSpec{{2}}, 1, DetectIsa()); }});
  Rng rng(8, RngPurpose::kTest);
  for (const int batch : {3, 7}) {
    const std::vector<float> x = RandomNumbers(batch * 32 * kSize * kSize, &rng);
    const std::vector<float> y = few.Forward(x, batch, true);
    EXPECT_EQ(rows.Forward(x, batch, true), y);
    EXPECT_EQ(rows.Backward(y, batch), few.Backward(y, batch)) << "and padding holds zeros";
    EXPECT_EQ(rows.gradients(), few.gradients());
  }
}

// Blocks of 33 samples have more columns than those of 70, the most that there may be here.
TEST(ConvolutionWaysTest, FewerSamplesThanTheMostFindRoomForMoreColumns) {
  LayerOnDevice layer(
      {"", {64, 56, 56}, R"(name: "l" convolution { outputs: 128 kernel: 3 stride: 2 pad: 1 })"},
      {"", [] { return MakeCpuBackend(1, DetectIsa()); }});
  Rng rng(8, RngPurpose::kTest);
  const std::vector<float> x = RandomNumbers(33 * 64 * 56 * 56, &rng);
  const std::vector<float> y = layer.Forward(x, 33, true);
  const std::vector<float> first(x.begin(), x.begin() + 64 * 56 * 56);
  const std::vector<float> alone = layer.Forward(first, 1, true);
  for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(alone[i], y[i], 1e-4) << i;
}

// Of small ones they go another way, by a plain sum.
TEST(ConvolutionWaysTest, FewSamplesHaveTheSameResultsUpToRounding) {
  ASSERT_FALSE(cpu::PaysByWinograd(Spec({9, 10, 10}, 12, 3, 1, 1), 8, 8));
  ThreeByThree convolution(9, 10, 12, 1);
  const std::vector<float> x = convolution.RandomInput(9);
  const std::vector<float> y = convolution.layer().Forward(x, 9, true);
  const std::vector<float> few =
      convolution.layer().Forward({x.begin(), x.begin() + 8 * 9 * 100}, 8, true);
  for (size_t i = 0; i < few.size(); ++i) ASSERT_NEAR(few[i], y[i], kRounding * 9 * 9) << i;
  EXPECT_FALSE(std::equal(few.begin(), few.end(), y.begin()));
}

// Of its 12 blocks of columns 3 threads take all as whole blocks, 16 none, and 5 threads 10.
TEST(ConvolutionWaysTest, ThreadsShareTheWorkWithoutAnotherBit) {
  ThreeByThree alone(20, 14, 18, 1);
  const std::vector<float> x = alone.RandomInput(33);
  const std::vector<float> y = alone.layer().Forward(x, 33, true);
  const std::vector<float> gradient = alone.layer().Backward(y, 33);
  for (const int threads : {3, 5, 16}) {
    ThreeByThree shared(20, 14, 18, threads);
    EXPECT_EQ(shared.layer().Forward(x, 33, true), y) << threads;
    EXPECT_EQ(shared.layer().Backward(y, 33), gradient) << threads;
    EXPECT_EQ(shared.layer().gradients(), alone.layer().gradients()) << threads;
  }
}

}  // namespace
}  // namespace kumo
