// Gradients that are brought down to a norm, on every device that there is.
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/optimiser/optimiser.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"

namespace kumo {
namespace {

constexpr int64_t kSize = 10'007;

std::vector<float> SomeNumbers(uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> numbers(kSize);
  for (float& x : numbers) x = rng.NextNormal();
  return numbers;
}

double Norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

std::vector<uint32_t> Bits(const std::vector<float>& x) {
  std::vector<uint32_t> bits;
  for (const float v : x) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}

// The devices: the CPU on every level, and a GPU where there is one.
std::vector<std::unique_ptr<Backend>> Backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa <= DetectIsa()) backends.push_back(MakeCpuBackend(1, isa));
  }
  if (auto cuda = MakeCudaBackend({}); cuda.ok()) backends.push_back(std::move(cuda).value());
  return backends;
}

// One step by momentum of a vector of weights.
class Stepped {
 public:
  Stepped(Backend& backend, const std::vector<float>& gradients, float clip_norm)
      : gradients_(Put(backend, gradients)), weights_(Put(backend, SomeNumbers(2))) {
    const auto optimiser = MakeOptimiser({});
    StepParameters step;
    step.optimiser = optimiser.get();
    step.decayed = {0.1f, 0.01f, 1};
    step.clip_norm = clip_norm;
    backend.SetStep(step);
    backend.MeasureGradients(gradients_.data(), kSize);
    DeviceArray<float> velocity(backend, kSize, "a velocity");
    float* const slots[] = {velocity.data()};
    backend.OptimiserStep(Segment::kDecayed, {}, gradients_.data(), kSize, weights_.data(), slots);
    backend.ScaleGradients(gradients_.data(), kSize);
    scaled = Read(backend, gradients_);
    weights = Read(backend, weights_);
  }

  std::vector<float> scaled;   // the gradients
  std::vector<float> weights;  // after the step

 private:
  static DeviceArray<float> Put(Backend& backend, const std::vector<float>& from) {
    DeviceArray<float> to(backend, kSize, "a vector");
    backend.Write(from.data(), from.size() * sizeof(float), to.data());
    return to;
  }
  static std::vector<float> Read(Backend& backend, const DeviceArray<float>& from) {
    std::vector<float> to(kSize);
    EXPECT_TRUE(backend.Read(from.data(), to.size() * sizeof(float), to.data()).ok());
    return to;
  }

  DeviceArray<float> gradients_;
  DeviceArray<float> weights_;
};

TEST(GradientClippingTest, ALongGradientIsMadeAsLongAsTheLimitAndKeepsItsDirection) {
  const std::vector<float> gradients = SomeNumbers(1);
  const double norm = Norm(gradients);
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    const Stepped stepped(*backend, gradients, 2.5f);
    EXPECT_NEAR(Norm(stepped.scaled), 2.5, 1e-5);
    for (size_t i = 0; i < gradients.size(); ++i) {
      const double expected = static_cast<double>(gradients[i]) * 2.5 / norm;
      ASSERT_NEAR(static_cast<double>(stepped.scaled[i]), expected, 1e-6 * std::abs(expected));
    }
  }
}

TEST(GradientClippingTest, TheOptimiserStepsByTheGradientThatWasScaled) {
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    const Stepped clipped(*backend, SomeNumbers(1), 2.5f);
    const Stepped expected(*backend, clipped.scaled, 0.0f);
    EXPECT_EQ(Bits(clipped.weights), Bits(expected.weights));
  }
}

TEST(GradientClippingTest, AShortGradientAndOneThatIsNoNumberStayAsTheyAre) {
  std::vector<float> not_a_number = SomeNumbers(1);
  not_a_number[77] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> infinite = SomeNumbers(1);
  infinite[78] = std::numeric_limits<float>::infinity();
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    EXPECT_EQ(Bits(Stepped(*backend, SomeNumbers(1), 1e6f).scaled), Bits(SomeNumbers(1)));
    for (const auto& broken : {not_a_number, infinite}) {
      EXPECT_EQ(Bits(Stepped(*backend, broken, 1.0f).scaled), Bits(broken));
    }
  }
}

}  // namespace
}  // namespace kumo
