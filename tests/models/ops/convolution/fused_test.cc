// A convolution that pools its own output gives what the two ops give one after the other.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/buffer.h"
#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "tests/models/numbers.h"
#include "tests/models/ops/reference.h"
#include "tests/models/single_arrays.h"

namespace kumo {
namespace {

constexpr int kBatch = 37;

struct Geometry {
  const char* name;
  ConvolutionSpec convolution;
  int pool;
};

class FusedConvolutionTest : public testing::TestWithParam<Geometry> {
 protected:
  FusedConvolutionTest()
      : spec_(GetParam().convolution),
        pool_{spec_.output(), GetParam().pool, GetParam().pool, GetParam().pool, 0},
        weight_(spec_.outputs * spec_.input.channels() * spec_.kernel_height * spec_.kernel_width),
        bias_(spec_.outputs) {
    Rng rng(5, RngPurpose::kTest);
    for (float& w : weight_) w = rng.NextUniform(-1, 1);
    for (float& b : bias_) b = rng.NextUniform(-1, 1);
    x_.resize(static_cast<size_t>(kBatch * spec_.input.size()));
    for (float& x : x_) x = rng.NextUniform(-1, 1);
  }

  struct Outcome {
    std::vector<float> y;
    std::vector<float> dx;
    std::vector<float> weight_gradient;
    std::vector<float> bias_gradient;
  };

  std::vector<float> Store(Backend* backend, const Shape& shape, const Buffer<float>& from) {
    std::vector<float> to(static_cast<size_t>(kBatch * shape.size()));
    backend->StoreOutputs(shape, kBatch, from.data(), to.data());
    return to;
  }

  // The gradient of sum y^2 / 2, with one op or with two.
  Outcome Run(int threads, bool fused) {
    const auto backend = MakeCpuBackend(threads);
    const Pass pass = {kBatch, true};
    const auto array = [&](const Shape& shape) {
      return Buffer<float>(backend->ActivationBytes(shape, kBatch) / int64_t{sizeof(float)});
    };
    Outcome outcome;
    outcome.weight_gradient.resize(weight_.size());
    outcome.bias_gradient.resize(bias_.size());
    float* const weights[] = {weight_.data(), bias_.data()};
    float* const gradients[] = {outcome.weight_gradient.data(), outcome.bias_gradient.data()};
    ConvolutionSpec spec = spec_;
    if (fused) spec.pool = pool_;
    const auto convolution = backend->MakeOp(spec, kBatch).value();
    convolution->Bind(weights, gradients);
    const auto pool = backend->MakeOp(pool_, kBatch).value();
    Buffer<float> x = array(spec_.input);
    Buffer<float> dx = array(spec_.input);
    Buffer<float> middle = array(spec_.output());
    Buffer<float> middle_gradient = array(spec_.output());
    Buffer<float> y = array(pool_.output());
    LoadActivations(*backend, spec_.input, kBatch, x_.data(), x.data());
    ForwardOf(convolution.get(), pass, x.data(), fused ? y.data() : middle.data());
    if (!fused) ForwardOf(pool.get(), pass, middle.data(), y.data());
    outcome.y = Store(backend.get(), pool_.output(), y);
    Buffer<float> dy = array(pool_.output());
    LoadActivations(*backend, pool_.output(), kBatch, outcome.y.data(), dy.data());
    if (!fused) {
      BackwardOf(pool.get(), pass, middle.data(), y.data(), dy.data(), middle_gradient.data());
    }
    BackwardOf(convolution.get(), pass, x.data(), fused ? y.data() : middle.data(),
               fused ? dy.data() : middle_gradient.data(), dx.data());
    outcome.dx = Store(backend.get(), spec_.input, dx);
    return outcome;
  }

  ConvolutionSpec spec_;
  PoolingSpec pool_;
  std::vector<float> weight_;
  std::vector<float> bias_;
  std::vector<float> x_;
};

void ExpectClose(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 1e-4f * (1 + std::abs(b[i]))) << what << " " << i;
  }
}

TEST_P(FusedConvolutionTest, EqualsConvolutionThenPooling) {
  const Outcome two = Run(1, false);
  const Outcome one = Run(1, true);
  EXPECT_EQ(one.y, two.y);
  EXPECT_EQ(one.dx, two.dx);
  EXPECT_EQ(one.weight_gradient, two.weight_gradient);
  ExpectClose(one.bias_gradient, two.bias_gradient, "bias");
}

TEST_P(FusedConvolutionTest, AgreesWithThePlainReference) {
  const reference::Numbers full =
      reference::Convolve(spec_, kBatch, {x_.begin(), x_.end()}, {weight_.begin(), weight_.end()},
                          {bias_.begin(), bias_.end()});
  const reference::Numbers expected = reference::MaxPool(pool_, kBatch, full);
  ExpectClose(Run(1, true).y, {expected.begin(), expected.end()}, "y");
}

TEST_P(FusedConvolutionTest, ANumberThatIsNoneShowsInTheSamePlaces) {
  Rng rng(6, RngPurpose::kTest);
  for (int i = 0; i < 20; ++i) {
    x_[rng.NextBelow(x_.size())] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<float> two = Run(1, false).y, one = Run(1, true).y;
  const reference::Numbers full =
      reference::Convolve(spec_, kBatch, {x_.begin(), x_.end()}, {weight_.begin(), weight_.end()},
                          {bias_.begin(), bias_.end()});
  const int64_t window = pool_.kernel_height;
  const Shape out = pool_.output(), in = pool_.input;
  for (int64_t i = 0; i < std::ssize(one); ++i) {
    const int64_t row = i / out.width() % out.height() * window, column = i % out.width() * window;
    bool none = false;
    for (int64_t tap = 0; tap < window * window; ++tap) {
      none = none ||
             std::isnan(full[(i / out.plane() * in.height() + row + tap / window) * in.width() +
                             column + tap % window]);
    }
    ASSERT_EQ(std::isnan(one[i]), none) << i;
    ASSERT_EQ(std::isnan(two[i]), none) << i;
  }
}

TEST_P(FusedConvolutionTest, ThreadsDoNotChangeABit) {
  const Outcome one = Run(1, true);
  const Outcome three = Run(3, true);
  EXPECT_EQ(one.y, three.y);
  EXPECT_EQ(one.dx, three.dx);
  EXPECT_EQ(one.weight_gradient, three.weight_gradient);
  EXPECT_EQ(one.bias_gradient, three.bias_gradient);
}

INSTANTIATE_TEST_SUITE_P(
    Geometries, FusedConvolutionTest,
    testing::Values(Geometry{"LeNetFirst", {{1, 12, 12}, 20, 5, 5, 1, 0, 1, true}, 2},
                    Geometry{"LeNetSecond", {{20, 8, 8}, 50, 5, 5, 1, 0, 1, true}, 2},
                    Geometry{"RowsLeftOver", {{3, 7, 9}, 5, 3, 3, 1, 0, 1, true}, 2},
                    Geometry{"PaddedThirds", {{2, 7, 7}, 8, 3, 3, 1, 1, 1, true}, 3},
                    Geometry{"Strided", {{4, 11, 11}, 6, 3, 3, 2, 0, 1, true}, 2}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace kumo
