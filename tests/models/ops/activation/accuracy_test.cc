// How near activations are to the functions that they are named after.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "tests/models/ops/layer_on_device.h"

namespace kumo {
namespace {

class ActivationAccuracyTest : public testing::Test {
 protected:
  // The largest error in units of the last place, over x of many sizes.
  double WorstUlps(const char* text, double (*exact)(double)) {
    double worst = 0;
    for (const Setting& setting : Settings()) {
      const Shape shape = {20000};
      LayerOnDevice layer({"", shape, text}, setting);
      std::vector<float> x;
      for (int64_t i = 0; i < shape.size(); ++i) {
        const double size = std::exp(static_cast<double>(i) / 20000.0 * 20 - 16);
        x.push_back(static_cast<float>(i % 2 == 0 ? size : -size));
      }
      const std::vector<float> y = layer.Forward(x, 1, true);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = exact(static_cast<double>(x[i]));
        const auto nearest = std::abs(static_cast<float>(expected));
        const double ulp = static_cast<double>(std::nextafter(nearest, 10.0f) - nearest);
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected) / ulp);
      }
    }
    return worst;
  }
};

TEST_F(ActivationAccuracyTest, TanhIsExactToAFewUlps) {
  EXPECT_LT(WorstUlps(R"(name: "l" tanh {})", [](double x) { return std::tanh(x); }), 4.0);
}

TEST_F(ActivationAccuracyTest, SigmoidIsExactToAFewUlps) {
  EXPECT_LT(WorstUlps(R"(name: "l" sigmoid {})", [](double x) { return 1 / (1 + std::exp(-x)); }),
            4.0);
}

// Far below 0 they lose bits with the exponential, of whose argument one bit more is lost for each
// doubling, but follow it down to where float32 has hardly anything left.
TEST_F(ActivationAccuracyTest, GeluAndSiluAreExactInRelationToTheirValue) {
  struct Function {
    const char* text;
    double (*exact)(double);
  };
  const Function functions[] = {
      {R"(name: "l" gelu {})", [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
      {R"(name: "l" gelu { approximate: TANH })",
       [](double x) {
         return x /
                (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
       }},
      {R"(name: "l" silu {})", [](double x) { return x / (1 + std::exp(-x)); }}};
  for (const Function& function : functions) {
    for (const Setting& setting : Settings()) {
      std::vector<float> x;
      for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) / 200.0f);
      for (const float size : {1e-30f, 1e-6f, 70.0f, 300.0f, 1e10f, 1e25f}) {
        x.push_back(size);
        x.push_back(-size);
      }
      LayerOnDevice layer({"", {static_cast<int64_t>(x.size())}, function.text}, setting);
      const std::vector<float> y = layer.Forward(x, 1, true);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = function.exact(static_cast<double>(x[i]));
        ASSERT_NEAR(static_cast<double>(y[i]), expected, 3e-5 * std::abs(expected) + 1e-32)
            << function.text << " of " << x[i] << ", " << setting.name;
        if (std::abs(x[i]) < 1) {
          ASSERT_NEAR(static_cast<double>(y[i]), expected, 5e-7 * std::abs(expected))
              << function.text << " of " << x[i] << ", " << setting.name;
        }
      }
      // Straight lines on both sides: nothing overflows on the way to them.
      const std::vector<float> slope = layer.Backward(std::vector<float>(x.size(), 1.0f), 1);
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::abs(x[i]) < 25) continue;
        EXPECT_NEAR(slope[i], x[i] < 0 ? 0 : 1, 1e-8) << function.text << " at " << x[i];
      }
    }
  }
}

TEST_F(ActivationAccuracyTest, ActivationsKeepNotANumber) {
  for (const char* text :
       {R"(name: "l" tanh {})", R"(name: "l" sigmoid {})", R"(name: "l" relu {})",
        R"(name: "l" leaky_relu {})", R"(name: "l" gelu {})",
        R"(name: "l" gelu { approximate: TANH })", R"(name: "l" silu {})"}) {
    for (const Setting& setting : Settings()) {
      LayerOnDevice layer({"", {1}, text}, setting);
      EXPECT_TRUE(std::isnan(layer.Forward({std::nanf("")}, 1, true)[0])) << text;
    }
  }
}

}  // namespace
}  // namespace kumo
