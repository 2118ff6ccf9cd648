// Steps of whole nets' weights, on every device that there is: muon against its formulas in double.
#include "models/weight_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"

namespace kumo {
namespace {

// The devices: the CPU on every level and with threads, and a GPU where there is one.
std::vector<std::unique_ptr<Backend>> Backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa <= DetectIsa()) backends.push_back(MakeCpuBackend(1, isa));
  }
  backends.push_back(MakeCpuBackend(3, DetectIsa()));
  if (auto cuda = MakeCudaBackend({}); cuda.ok()) backends.push_back(std::move(cuda).value());
  return backends;
}

std::vector<float> SomeNumbers(int64_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& x : numbers) x = rng.NextNormal();
  return numbers;
}

std::vector<uint32_t> Bits(const std::vector<float>& x) {
  std::vector<uint32_t> bits;
  for (const float v : x) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}

// Wide, tall and square matrices, one with factors, and tensors that are none, before and between.
ParameterLayout SomeLayout() {
  return ParameterLayout::Make({{"embedding", {7, 5}},
                                {"wide", {6, 37}},
                                {"tall", {50, 3, 2, 2}},
                                {"bias", {9}, Segment::kUndecayed},
                                {"table", {3, 3}},
                                {"square", {17, 17}},
                                {"slow", {4, 8}, Segment::kDecayed, {.rate = 0.5f, .decay = 0.1f}},
                                {"mean", {4}, Segment::kStatistics}})
      .value();
}
std::vector<MatrixTensor> SomeMatrices() {
  return {{1, 6, 37}, {2, 50, 12}, {5, 17, 17}, {6, 4, 8}};
}

constexpr float kRate = 0.02f;
constexpr float kDecay = 0.3f;

OptimiserSettings MuonSettings() {
  OptimiserSettings settings;
  settings.type = OptimiserType::kMuon;
  settings.momentum = 0.95f;
  return settings;
}

// Weights that are stepped on a device.
class Walk {
 public:
  Walk(Backend& backend, const OptimiserSettings& settings)
      : backend_(backend),
        optimiser_(MakeOptimiser(settings)),
        step_(layout, SomeMatrices(), optimiser_->traits(), &backend),
        weights_(Put(SomeNumbers(layout.size(), 1))),
        slots_(Put(std::vector<float>(static_cast<size_t>(2 * layout.size())))) {}

  void Step(const std::vector<float>& gradients, float clip_norm = 0.0f) {
    const DeviceArray<float> there = Put(gradients);
    StepParameters parameters;
    parameters.optimiser = optimiser_.get();
    parameters.decayed = {kRate, kDecay, ++steps_};
    parameters.undecayed = {kRate, 0.0f, steps_};
    parameters.clip_norm = clip_norm;
    backend_.SetStep(parameters);
    backend_.MeasureGradients(there.data(), layout.segment(Segment::kUndecayed).end);
    step_.Queue(there.data(), weights_.data(), slots_.data());
    EXPECT_TRUE(backend_.Wait().ok());
  }
  std::vector<float> weights() { return Read(weights_); }
  std::vector<float> slots() { return Read(slots_); }

  const ParameterLayout layout = SomeLayout();

 private:
  DeviceArray<float> Put(const std::vector<float>& from) {
    DeviceArray<float> to(backend_, static_cast<int64_t>(from.size()), "a vector");
    backend_.Write(from.data(), from.size() * sizeof(float), to.data());
    return to;
  }
  std::vector<float> Read(const DeviceArray<float>& from) {
    std::vector<float> to(static_cast<size_t>(from.size()));
    EXPECT_TRUE(backend_.Read(from.data(), to.size() * sizeof(float), to.data()).ok());
    return to;
  }

  Backend& backend_;
  const std::unique_ptr<Optimiser> optimiser_;
  WeightStep step_;
  DeviceArray<float> weights_, slots_;
  int64_t steps_ = 0;
};

using Numbers = std::vector<double>;  // a matrix, row by row

Numbers Product(const Numbers& a, const Numbers& b, int64_t rows, int64_t depth, int64_t columns) {
  Numbers to(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < columns; ++j) {
        to[i * columns + j] += a[i * depth + k] * b[k * columns + j];
      }
    }
  }
  return to;
}

Numbers Transposed(const Numbers& x, int64_t rows, int64_t columns) {
  Numbers to(x.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = x[i * columns + j];
  }
  return to;
}

// As published: transposed first if there are more rows than columns.
Numbers Orthogonalised(Numbers x, int64_t rows, int64_t columns) {
  if (rows > columns) {
    return Transposed(Orthogonalised(Transposed(x, rows, columns), columns, rows), columns, rows);
  }
  double sum = 0;
  for (const double v : x) sum += v * v;
  for (double& v : x) v /= std::sqrt(sum) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    const Numbers a = Product(x, Transposed(x, rows, columns), rows, columns, rows);
    Numbers b = Product(a, a, rows, rows, rows);
    for (size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    const Numbers bx = Product(b, x, rows, rows, columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
  }
  return x;
}

// A matrix of a walk, in double.
struct Reference {
  void Step(const std::vector<float>& gradient, float scale, const StepFactors& factors) {
    Numbers u(weights.size());
    for (size_t i = 0; i < u.size(); ++i) {
      const double g = 0.05 * static_cast<double>(scale * gradient[i]);
      mean[i] = 0.95 * mean[i] + g;
      u[i] = g + 0.95 * mean[i];
    }
    const Numbers x = Orthogonalised(u, rows, columns);
    const double rate = static_cast<double>(kRate * factors.rate);
    const double shrink = 1 - rate * static_cast<double>(kDecay * factors.decay);
    const double ratio = static_cast<double>(rows) / static_cast<double>(columns);
    for (size_t i = 0; i < u.size(); ++i) {
      weights[i] = shrink * weights[i] - rate * std::sqrt(std::max(1.0, ratio)) * x[i];
    }
  }

  int64_t rows, columns;
  Numbers weights;
  Numbers mean = Numbers(weights.size());
};

std::vector<float> PartOf(const std::vector<float>& all, const Range& range) {
  return {all.begin() + range.begin, all.begin() + range.end};
}

TEST(WeightStep, MuonFollowsItsFormulasInDouble) {
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    Walk walk(*backend, MuonSettings());
    std::vector<Reference> references;
    const std::vector<float> start = walk.weights();
    for (const MatrixTensor& m : SomeMatrices()) {
      const std::vector<float> part = PartOf(start, walk.layout.tensor(m.tensor));
      references.push_back({m.rows, m.columns, Numbers(part.begin(), part.end())});
    }
    for (uint64_t step = 1; step <= 6; ++step) {
      const std::vector<float> gradients = SomeNumbers(walk.layout.size(), 10 + step);
      walk.Step(gradients);
      const std::vector<float> weights = walk.weights();
      for (size_t m = 0; m < references.size(); ++m) {
        const int tensor = SomeMatrices()[m].tensor;
        const Range range = walk.layout.tensor(tensor);
        references[m].Step(PartOf(gradients, range), 1.0f,
                           walk.layout.tensors()[static_cast<size_t>(tensor)].factors);
        const std::vector<float> part = PartOf(weights, range);
        for (size_t i = 0; i < part.size(); ++i) {
          ASSERT_NEAR(static_cast<double>(part[i]), references[m].weights[i], 2e-5)
              << walk.layout.tensors()[static_cast<size_t>(tensor)].name << ", step " << step;
        }
      }
    }
  }
}

TEST(WeightStep, WeightsThatAreNoMatricesAreSteppedByAdamWAtItsShareOfTheRate) {
  OptimiserSettings adamw;
  adamw.type = OptimiserType::kAdamW;
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    Walk muon(*backend, MuonSettings());
    const auto rule = MakeOptimiser(adamw);
    const ParameterLayout& layout = muon.layout;
    const auto n = static_cast<size_t>(layout.size());
    std::vector<float> weights = muon.weights(), mean(n), square(n);
    for (int64_t step = 1; step <= 4; ++step) {
      const std::vector<float> gradients = SomeNumbers(layout.size(), static_cast<uint64_t>(step));
      muon.Step(gradients);
      float* const slots[] = {mean.data(), square.data()};
      rule->Step({0.05f * kRate, kDecay, step}, 1.0f, gradients, weights, weights, slots);
    }
    for (const int tensor : {0, 4}) {
      const Range range = layout.tensor(tensor);
      EXPECT_THAT(PartOf(muon.weights(), range),
                  testing::Pointwise(testing::FloatNear(1e-6f), PartOf(weights, range)));
    }
    // Gaps and statistics stay.
    const Range statistics = layout.segment(Segment::kStatistics);
    const std::vector<float> start = Walk(*backend, MuonSettings()).weights();
    EXPECT_EQ(PartOf(muon.weights(), statistics), PartOf(start, statistics));
  }
}

TEST(WeightStep, MuonsStepDoesNotDependOnTheScaleOfTheGradient) {
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    Walk once(*backend, MuonSettings()), scaled(*backend, MuonSettings());
    std::vector<float> gradients = SomeNumbers(once.layout.size(), 3);
    once.Step(gradients);
    for (float& g : gradients) g *= 4096.0f;
    scaled.Step(gradients);
    for (const MatrixTensor& m : SomeMatrices()) {
      const Range range = once.layout.tensor(m.tensor);
      EXPECT_THAT(PartOf(scaled.weights(), range),
                  testing::Pointwise(testing::FloatNear(1e-5f), PartOf(once.weights(), range)));
    }
  }
}

TEST(WeightStep, AMatrixWithoutAGradientOnlyDecays) {
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    Walk walk(*backend, MuonSettings());
    const std::vector<float> start = walk.weights();
    walk.Step(std::vector<float>(start.size()));
    const Range range = walk.layout.tensor(1);
    for (int64_t i = range.begin; i < range.end; ++i) {
      ASSERT_FLOAT_EQ(walk.weights()[i], start[i] * (1 - kRate * kDecay));
    }
  }
}

TEST(WeightStep, TheSameStepsGiveTheSameBitsAndClippedGradientsAreUsed) {
  for (const auto& backend : Backends()) {
    SCOPED_TRACE(backend->name());
    Walk a(*backend, MuonSettings()), b(*backend, MuonSettings());
    for (uint64_t step = 1; step <= 3; ++step) {
      a.Step(SomeNumbers(a.layout.size(), step), 0.5f);
      b.Step(SomeNumbers(a.layout.size(), step), 0.5f);
    }
    EXPECT_EQ(Bits(a.weights()), Bits(b.weights()));
    EXPECT_EQ(Bits(a.slots()), Bits(b.slots()));
    const Range range = a.layout.tensor(1);
    double momentum = 0;
    for (const float x : PartOf(a.slots(), range))
      momentum = std::max(momentum, std::abs(double{x}));
    EXPECT_LT(momentum, 0.03);  // of gradients of norm .5
    EXPECT_GT(momentum, 0.0);
  }
}

TEST(WeightStep, OtherOptimisersTakeNoMatricesAndNoMemoryForThem) {
  for (const auto& choice : ChoicesOf(OptimiserType())) {
    const OptimiserTraits& traits = TraitsOf(choice.value);
    const int64_t floats = WeightStep::ScratchFloats(SomeMatrices(), traits);
    EXPECT_EQ(floats, traits.steps_matrices ? 2 * (50 * 12 + 17 * 17) : 0) << choice.word;
  }
}

}  // namespace
}  // namespace kumo
