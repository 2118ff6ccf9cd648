#include "common/optimiser/optimiser.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

std::vector<float> Normal(size_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> numbers(n);
  for (float& x : numbers) x = rng.NextNormal();
  return numbers;
}

std::unique_ptr<Optimiser> Make(const OptimiserSettings& settings, Isa isa = DetectIsa()) {
  return MakeOptimiser(settings, isa);
}

OptimiserSettings Type(OptimiserType type) {
  OptimiserSettings settings;
  settings.type = type;
  return settings;
}

// Weights and slots that walk along gradients.
struct Walk {
  explicit Walk(std::vector<float> start) : weights(std::move(start)) {
    for (auto& slot : slots) slot.assign(weights.size(), 0.0f);
  }
  void Step(const Optimiser& optimiser, const StepInfo& info, std::span<const float> gradient,
            float scale = 1.0f) {
    StepRange(optimiser, info, gradient, scale, 0, weights.size());
  }
  void StepRange(const Optimiser& optimiser, const StepInfo& info, std::span<const float> gradient,
                 float scale, size_t begin, size_t count) {
    float* const at[] = {slots[0].data() + begin, slots[1].data() + begin};
    const std::span<float> range = std::span(weights).subspan(begin, count);
    optimiser.Step(info, scale, gradient.subspan(begin, count), range, range, at);
  }

  std::vector<float> weights;
  std::vector<float> slots[Optimiser::kMaxSlots];
};

// One number, in double, from the formulas of optimiser.h.
struct Reference {
  double w = 0, a = 0, b = 0;
  void Step(const OptimiserSettings& s, const StepInfo& info, double g) {
    double lr = info.learning_rate;
    const double decay = info.weight_decay;
    if (s.type == OptimiserType::kMuon) lr *= s.adamw_factor;  // no matrix
    if (s.type == OptimiserType::kAdamW || s.type == OptimiserType::kMuon) {
      w -= lr * decay * w;
    } else {
      g += decay * w;
    }
    if (s.type == OptimiserType::kSgd) {
      w -= lr * g;
    } else if (s.type == OptimiserType::kMomentum || s.type == OptimiserType::kNesterov) {
      const double mu = s.momentum;
      a = mu * a + g;
      w -= lr * (s.type == OptimiserType::kMomentum ? a : g + mu * a);
    } else {
      const double beta1 = s.beta1, beta2 = s.beta2;
      a = beta1 * a + (1 - beta1) * g;
      b = beta2 * b + (1 - beta2) * g * g;
      const double t = static_cast<double>(info.step);
      const double mean = a / (1 - std::pow(beta1, t));
      const double square = b / (1 - std::pow(beta2, t));
      w -= lr * mean / (std::sqrt(square) + static_cast<double>(s.epsilon));
    }
  }
};

struct OptimiserCase {
  OptimiserType type;
  Isa isa;
};

std::vector<OptimiserCase> AllCases() {
  std::vector<OptimiserCase> cases;
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    for (const auto& choice : ChoicesOf(OptimiserType())) cases.push_back({choice.value, isa});
  }
  return cases;
}

class EveryOptimiser : public testing::TestWithParam<OptimiserCase> {};

TEST_P(EveryOptimiser, FollowsItsFormulaInDouble) {
  const OptimiserSettings settings = Type(GetParam().type);
  const auto optimiser = Make(settings, GetParam().isa);
  const size_t n = 133;
  Walk walk(Normal(n, 1));
  std::vector<Reference> references(n);
  for (size_t i = 0; i < n; ++i) references[i].w = static_cast<double>(walk.weights[i]);
  for (int64_t step = 1; step <= 60; ++step) {
    const StepInfo info = {0.02f / static_cast<float>(step % 3 + 1), step % 2 ? 0.01f : 0.0f, step};
    const std::vector<float> gradient = Normal(n, 100 + static_cast<uint64_t>(step));
    walk.Step(*optimiser, info, gradient, 0.25f);
    for (size_t i = 0; i < n; ++i) {
      references[i].Step(settings, info, 0.25 * static_cast<double>(gradient[i]));
      ASSERT_NEAR(static_cast<double>(walk.weights[i]), references[i].w, 1e-5) << "step " << step;
    }
  }
}

TEST_P(EveryOptimiser, FactorsAreThoseOfTheLearningRateAndTheWeightDecay) {
  const auto optimiser = Make(Type(GetParam().type), GetParam().isa);
  Walk with(Normal(133, 1));
  Walk by_hand = with;
  for (int64_t step = 1; step <= 5; ++step) {
    const std::vector<float> gradient = Normal(133, 50 + static_cast<uint64_t>(step));
    with.Step(*optimiser, {0.03f, 0.01f, step, {}, {.rate = 2, .decay = 0.25f}}, gradient);
    by_hand.Step(*optimiser, {0.06f, 0.0025f, step}, gradient);
    ASSERT_EQ(with.weights, by_hand.weights);
    for (int s = 0; s < Optimiser::kMaxSlots; ++s) ASSERT_EQ(with.slots[s], by_hand.slots[s]);
  }
}

TEST_P(EveryOptimiser, StepsRangesInAnyOrderWithTheSameBits) {
  const auto optimiser = Make(Type(GetParam().type), GetParam().isa);
  const size_t n = 1000;
  Walk whole(Normal(n, 2));
  Walk parts = whole;
  Rng rng(3, RngPurpose::kTest);
  for (int64_t step = 1; step <= 5; ++step) {
    const StepInfo info = {0.1f, 0.001f, step};
    const std::vector<float> gradient = Normal(n, 10 + static_cast<uint64_t>(step));
    whole.Step(*optimiser, info, gradient, 0.5f);
    const size_t a = rng.NextBelow(n);
    const size_t b = a + rng.NextBelow(n - a);
    parts.StepRange(*optimiser, info, gradient, 0.5f, b, n - b);
    parts.StepRange(*optimiser, info, gradient, 0.5f, 0, a);
    parts.StepRange(*optimiser, info, gradient, 0.5f, a, b - a);
    ASSERT_EQ(whole.weights, parts.weights);
    for (int s = 0; s < Optimiser::kMaxSlots; ++s) ASSERT_EQ(whole.slots[s], parts.slots[s]);
  }
}

TEST_P(EveryOptimiser, ComputesTheSameBitsAsTheBaseline) {
  const OptimiserSettings settings = Type(GetParam().type);
  const auto optimiser = Make(settings, GetParam().isa);
  const auto baseline = Make(settings, Isa::kBaseline);
  Walk walk(Normal(531, 4));
  Walk expected = walk;
  for (int64_t step = 1; step <= 20; ++step) {
    const StepInfo info = {0.03f, 0.002f, step};
    const std::vector<float> gradient = Normal(531, 20 + static_cast<uint64_t>(step));
    walk.Step(*optimiser, info, gradient, 1.0f / 3.0f);
    expected.Step(*baseline, info, gradient, 1.0f / 3.0f);
    ASSERT_EQ(walk.weights, expected.weights);
    for (int s = 0; s < Optimiser::kMaxSlots; ++s) ASSERT_EQ(walk.slots[s], expected.slots[s]);
  }
}

TEST_P(EveryOptimiser, WritesBesideTheWeightsWhatItWritesInPlace) {
  const auto optimiser = Make(Type(GetParam().type), GetParam().isa);
  Walk in_place(Normal(77, 5));
  Walk beside = in_place;
  const std::vector<float> before = beside.weights;
  const std::vector<float> gradient = Normal(77, 6);
  std::vector<float> next(77);
  float* const slots[] = {beside.slots[0].data(), beside.slots[1].data()};
  optimiser->Step({0.1f, 0.01f, 1}, 1.0f, gradient, beside.weights, next, slots);
  in_place.Step(*optimiser, {0.1f, 0.01f, 1}, gradient);
  EXPECT_EQ(next, in_place.weights);
  EXPECT_EQ(beside.weights, before);
}

TEST_P(EveryOptimiser, TouchesOnlyTheSlotsThatItDeclares) {
  const auto optimiser = Make(Type(GetParam().type), GetParam().isa);
  Walk walk(Normal(40, 7));
  walk.Step(*optimiser, {0.1f, 0.0f, 1}, Normal(40, 8));
  const std::vector<float> zeros(40, 0.0f);
  for (int s = 0; s < Optimiser::kMaxSlots; ++s) {
    EXPECT_EQ(walk.slots[s] == zeros, s >= optimiser->slots()) << "slot " << s;
  }
}

std::string CaseName(const testing::TestParamInfo<OptimiserCase>& info) {
  const char* levels[] = {"Baseline", "V3", "V4"};
  return levels[static_cast<int>(info.param.isa)] + ("_" + std::string(WordOf(info.param.type)));
}

INSTANTIATE_TEST_SUITE_P(Optimisers, EveryOptimiser, testing::ValuesIn(AllCases()), CaseName);

// Worked out by hand: w = 1, gradient 2 then 1, learning rate .1, momentum .5, no decay.
float AfterTwoSteps(OptimiserType type) {
  OptimiserSettings settings = Type(type);
  settings.momentum = 0.5f;
  const auto optimiser = Make(settings);
  Walk walk({1.0f});
  walk.Step(*optimiser, {0.1f, 0.0f, 1}, std::vector<float>{2.0f});
  walk.Step(*optimiser, {0.1f, 0.0f, 2}, std::vector<float>{1.0f});
  return walk.weights[0];
}

TEST(Optimisers, SayWhatTheirSlotsMean) {
  for (const auto& choice : ChoicesOf(OptimiserType())) {
    const OptimiserTraits& traits = TraitsOf(choice.value);
    EXPECT_EQ(traits.type, choice.value);
    EXPECT_EQ(traits.name, choice.word);
    EXPECT_EQ(Make(Type(choice.value))->traits().type, choice.value);
    EXPECT_EQ(Make(Type(choice.value))->slots(), traits.slots) << choice.word;
    EXPECT_EQ(std::string_view(traits.state).empty(), traits.slots == 0) << choice.word;
  }
  const auto state = [](OptimiserType type) { return std::string_view(TraitsOf(type).state); };
  EXPECT_EQ(state(OptimiserType::kMomentum), state(OptimiserType::kNesterov));
  EXPECT_EQ(state(OptimiserType::kAdam), state(OptimiserType::kAdamW));
  EXPECT_NE(state(OptimiserType::kAdam), state(OptimiserType::kMomentum));
  EXPECT_TRUE(TraitsOf(OptimiserType::kAdamW).corrects_bias);
  EXPECT_FALSE(TraitsOf(OptimiserType::kMomentum).corrects_bias);
  EXPECT_TRUE(TraitsOf(OptimiserType::kMomentum).has_momentum);
  EXPECT_FALSE(TraitsOf(OptimiserType::kAdam).has_momentum);
  EXPECT_TRUE(TraitsOf(OptimiserType::kNesterov).has_unit_gain);
  EXPECT_TRUE(TraitsOf(OptimiserType::kMuon).has_momentum);
  EXPECT_FALSE(TraitsOf(OptimiserType::kMuon).has_unit_gain);
  EXPECT_NE(state(OptimiserType::kMuon), state(OptimiserType::kAdamW));
}

TEST(Optimisers, MatchTwoStepsWorkedOutByHand) {
  EXPECT_FLOAT_EQ(AfterTwoSteps(OptimiserType::kSgd), 0.7f);       // 1 - .2 - .1
  EXPECT_FLOAT_EQ(AfterTwoSteps(OptimiserType::kMomentum), 0.6f);  // v = 2, 2: 1 - .2 - .2
  EXPECT_FLOAT_EQ(AfterTwoSteps(OptimiserType::kNesterov), 0.5f);  // 1 - .1 (2 + 1) - .1 (1 + 1)
  // m = .2, v = .004; then m = .28, v = .004996: .1 + .1 (.28/.19) / sqrt(.004996/.001999)
  EXPECT_NEAR(AfterTwoSteps(OptimiserType::kAdam),
              1.0 - 0.1 - 0.1 * (0.28 / 0.19) / std::sqrt(0.004996 / 0.001999), 1e-6);
}

TEST(Optimisers, AStepsMomentumComesBeforeTheSettings) {
  for (const OptimiserType type : {OptimiserType::kMomentum, OptimiserType::kNesterov}) {
    OptimiserSettings settings = Type(type);
    settings.momentum = 0.25f;
    const auto quarter = Make(settings);
    const auto own = Make(Type(type));
    Walk walk(Normal(50, 1)), expected(Normal(50, 1));
    for (int64_t step = 1; step <= 5; ++step) {
      const std::vector<float> gradient = Normal(50, 10 + static_cast<uint64_t>(step));
      expected.Step(*quarter, {0.1f, 0.01f, step}, gradient);
      walk.Step(*own, {0.1f, 0.01f, step, 0.25f}, gradient);
    }
    EXPECT_EQ(walk.weights, expected.weights) << WordOf(type);
  }
}

// Of constant gradients the velocity tends to the gradient itself, and while nothing changes unit
// gain is a rate of (1 - momentum) times as much.
TEST(Optimisers, WithUnitGainTheVelocityIsAMeanOfGradients) {
  for (const OptimiserType type : {OptimiserType::kMomentum, OptimiserType::kNesterov}) {
    OptimiserSettings settings = Type(type);
    settings.momentum = 0.75f;
    const auto sum = Make(settings);
    settings.unit_gain = true;
    const auto mean = Make(settings);
    Walk walk(Normal(50, 1)), expected(Normal(50, 1));
    for (int64_t step = 1; step <= 40; ++step) {
      const std::vector<float> gradient = Normal(50, 10 + static_cast<uint64_t>(step));
      expected.Step(*sum, {0.25f * 0.1f, 0.01f, step}, gradient);
      walk.Step(*mean, {0.1f, 0.01f, step}, gradient);
      for (size_t i = 0; i < 50; ++i)
        ASSERT_NEAR(walk.weights[i], expected.weights[i], 1e-5) << WordOf(type);
    }
    Walk constant(std::vector<float>(1, 0.0f));
    for (int64_t step = 1; step <= 60; ++step) {
      constant.Step(*mean, {0.1f, 0.0f, step}, std::vector<float>{3.0f});
    }
    EXPECT_NEAR(constant.slots[0][0], 3.0f, 1e-4) << WordOf(type);
  }
  for (const OptimiserType type :
       {OptimiserType::kSgd, OptimiserType::kAdam, OptimiserType::kAdamW, OptimiserType::kMuon}) {
    OptimiserSettings settings = Type(type);
    const auto plain = Make(settings);
    settings.unit_gain = true;
    EXPECT_EQ(Make(settings)->NumbersOf({}, 1.0f).scale, plain->NumbersOf({}, 1.0f).scale)
        << WordOf(type);
  }
}

TEST(Optimisers, AdamsFirstStepIsTheLearningRateWhateverTheGradient) {
  const auto optimiser = Make(Type(OptimiserType::kAdam));
  Walk walk({0.0f, 0.0f});
  walk.Step(*optimiser, {0.01f, 0.0f, 1}, std::vector<float>{1e-3f, -1e3f});
  EXPECT_NEAR(walk.weights[0], -0.01f, 1e-6f);
  EXPECT_NEAR(walk.weights[1], 0.01f, 1e-6f);
}

// Moments of few steps, made right for a count of many, move the weights as before.
TEST(Optimisers, SlotsMayBeMadeRightForAnotherCountOfSteps) {
  for (const OptimiserType type : {OptimiserType::kAdam, OptimiserType::kAdamW}) {
    const auto optimiser = Make(Type(type));
    std::vector<float> weight = {1}, mean = {0}, square = {0};
    float* const slots[] = {mean.data(), square.data()};
    const std::vector<float> gradient = {.25f};
    for (int64_t step = 1; step <= 5; ++step) {
      optimiser->Step({.learning_rate = .1f, .step = step}, 1, gradient, weight, weight, slots);
    }
    const auto factors = optimiser->FactorsBetween(5, 1000);
    mean[0] *= factors[0];
    square[0] *= factors[1];
    EXPECT_FLOAT_EQ(mean[0], .25f);
    EXPECT_NEAR(square[0], .0625f * (1 - std::pow(.999, 1000)), 1e-6);
    const float before = weight[0];
    optimiser->Step({.learning_rate = .1f, .step = 1001}, 1, gradient, weight, weight, slots);
    EXPECT_NEAR(before - weight[0], .1f, 1e-6);
  }
  EXPECT_EQ(Make(Type(OptimiserType::kMomentum))->FactorsBetween(1, 9)[0], 1);
}

TEST(Optimisers, DecayIsCoupledInAdamAndDecoupledInAdamW) {
  // Without a gradient adam takes a whole step along the sign of the weight, adamw shrinks it.
  Walk adam({2.0f});
  adam.Step(*Make(Type(OptimiserType::kAdam)), {0.1f, 0.5f, 1}, std::vector<float>{0.0f});
  EXPECT_NEAR(adam.weights[0], 1.9f, 1e-6f);
  Walk adamw({2.0f});
  adamw.Step(*Make(Type(OptimiserType::kAdamW)), {0.1f, 0.5f, 1}, std::vector<float>{0.0f});
  EXPECT_NEAR(adamw.weights[0], 1.9f, 1e-6f);  // 2 - .1 * .5 * 2
  Walk larger({4.0f});
  larger.Step(*Make(Type(OptimiserType::kAdamW)), {0.1f, 0.5f, 1}, std::vector<float>{0.0f});
  EXPECT_NEAR(larger.weights[0], 3.8f, 1e-6f);
}

}  // namespace
}  // namespace kumo
