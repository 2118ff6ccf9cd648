#include "server/rules/rule.h"

#include <cmath>
#include <functional>
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

// A chunk that a rule walks: both versions of the arrays, swapped after each round.
struct Chunk {
  explicit Chunk(std::vector<float> initial)
      : start(initial),
        next_start(initial.size(), -1.0f),
        weights(initial),
        next_weights(initial.size(), -1.0f) {
    for (auto& slot : slots) slot.assign(initial.size(), 0.0f);
  }

  // sum is over samples, as the rule takes it.
  void Round(const Rule& rule, const RoundInfo& info, const std::vector<float>& sum,
             bool stream = false) {
    const bool apart = rule.keeps_weights_apart();
    rule.Apply(info, {.n = sum.size(),
                      .sum = sum.data(),
                      .scale = info.samples > 0 ? 1.0f / static_cast<float>(info.samples) : 0.0f,
                      .start = start.data(),
                      .next_start = next_start.data(),
                      .weights = apart ? weights.data() : nullptr,
                      .next_weights = apart ? next_weights.data() : nullptr,
                      .slots = {slots[0].data(), slots[1].data()},
                      .stream = stream});
    if (stream) FenceStreams();
    std::swap(start, next_start);
    if (apart) std::swap(weights, next_weights);
  }
  // What is evaluated.
  const std::vector<float>& evaluated(const Rule& rule) const {
    return rule.keeps_weights_apart() ? weights : start;
  }

  std::vector<float> start, next_start, weights, next_weights;
  std::vector<float> slots[Optimiser::kMaxSlots];
};

std::unique_ptr<Rule> Block(const BlockRuleSettings& settings, int partitions = 2,
                            int64_t full_block = 100, Isa isa = DetectIsa()) {
  return MakeBlockRule(settings, partitions, full_block, isa);
}

RoundInfo Samples(int64_t samples, int partitions = 2, float block_rate = 1.0f) {
  return {.learning_rate = 0.1f,
          .block_rate = block_rate,
          .samples = samples,
          .partitions = partitions};
}

// Every rule with the settings that it reads.
std::vector<BlockRuleSettings> AllBlockSettings() {
  std::vector<BlockRuleSettings> all;
  for (const auto& rule : ChoicesOf(BlockRule())) {
    for (const auto& convention : ChoicesOf(BlockConvention())) {
      for (const bool nesterov : {false, true}) {
        const BlockRuleSettings settings = {.rule = rule.value,
                                            .convention = convention.value,
                                            .nesterov = nesterov,
                                            .momentum = 0.9f};
        const bool first = convention.value == BlockConvention() && !nesterov;
        if (first || TraitsOf(settings).takes_convention) all.push_back(settings);
      }
    }
  }
  return all;
}

struct RuleCase {
  std::string name;
  std::function<std::unique_ptr<Rule>(Isa)> make;
};

// Every rule with every optimiser or convention, as it is.
std::vector<RuleCase> PlainRules() {
  std::vector<RuleCase> cases;
  for (const auto& choice : ChoicesOf(OptimiserType())) {
    OptimiserSettings settings;
    settings.type = choice.value;
    cases.push_back({"gradient_" + std::string(choice.word),
                     [settings](Isa isa) { return MakeGradientRule(settings, isa); }});
  }
  for (const BlockRuleSettings& settings : AllBlockSettings()) {
    cases.push_back({std::string(WordOf(settings.rule)) + "_" +
                         std::string(WordOf(settings.convention)) +
                         (settings.nesterov ? "_nesterov" : ""),
                     [settings](Isa isa) { return Block(settings, 2, 100, isa); }});
  }
  return cases;
}

// Those rules, and with a moving average.
std::vector<RuleCase> AllRules() {
  std::vector<RuleCase> cases = PlainRules();
  for (const RuleCase& plain : PlainRules()) {
    cases.push_back({plain.name + "_averaged",
                     [plain](Isa isa) { return MakeAveragedRule(plain.make(isa), isa); }});
  }
  return cases;
}

class EveryRule : public testing::TestWithParam<RuleCase> {};

TEST_P(EveryRule, AnEmptyRoundChangesNothing) {
  const auto rule = GetParam().make(DetectIsa());
  Chunk chunk(Normal(300, 1));
  for (int64_t step = 1; step <= 3; ++step) {
    RoundInfo info = Samples(100);
    info.step = step;
    chunk.Round(*rule, info, Normal(300, 2));
  }
  const Chunk before = chunk;
  chunk.Round(*rule, Samples(0), Normal(300, 3));
  EXPECT_EQ(chunk.start, before.start);
  EXPECT_EQ(chunk.weights, before.weights);
  for (int s = 0; s < Optimiser::kMaxSlots; ++s) EXPECT_EQ(chunk.slots[s], before.slots[s]);
}

TEST_P(EveryRule, ComputesTheSameBitsOnEveryLevelStreamedOrNot) {
  const auto baseline = GetParam().make(Isa::kBaseline);
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    const auto rule = GetParam().make(isa);
    for (const bool stream : {false, true}) {
      for (const size_t n : {size_t{1}, size_t{37}, size_t{1024}, size_t{1100}}) {
        Chunk chunk(Normal(n, 4));
        Chunk expected = chunk;
        for (int64_t step = 1; step <= 6; ++step) {
          RoundInfo info = Samples(step == 6 ? 37 : 100, 2, 0.7f);
          info.step = step;
          info.average_share = 0.3f;
          const std::vector<float> sum = Normal(n, 10 + static_cast<uint64_t>(step));
          chunk.Round(*rule, info, sum, stream);
          expected.Round(*baseline, info, sum);
          ASSERT_EQ(chunk.start, expected.start);
          ASSERT_EQ(chunk.weights, expected.weights);
          for (int s = 0; s < Optimiser::kMaxSlots; ++s) {
            ASSERT_EQ(chunk.slots[s], expected.slots[s]);
          }
        }
      }
    }
  }
}

std::string CaseName(const testing::TestParamInfo<RuleCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(AllRules()), CaseName);

// Two rounds of one number, from s = w = 10, with G = 2 and then G = 1 (sums over 100 samples).
struct Numbers {
  float start, weights, velocity;
};
Numbers AfterTwoRounds(const Rule& rule, const RoundInfo& info) {
  Chunk chunk({10.0f});
  const float n = static_cast<float>(info.samples);
  chunk.Round(rule, info, {2.0f * n});
  chunk.Round(rule, info, {1.0f * n});
  return {chunk.start[0], chunk.evaluated(rule)[0], chunk.slots[0][0]};
}

TEST(BlockMomentum, PaperConventionMatchesTwoRoundsByHand) {
  // eta .5, zeta .5: v = 1, then .5 + .5 = 1.
  const RoundInfo half = Samples(100, 2, 0.5f);
  const Numbers cbm = AfterTwoRounds(*Block({.momentum = 0.5f}), half);
  EXPECT_FLOAT_EQ(cbm.velocity, 1.0f);
  EXPECT_FLOAT_EQ(cbm.start, 8.0f);
  EXPECT_FLOAT_EQ(cbm.weights, 8.0f);
  const Numbers nesterov = AfterTwoRounds(*Block({.nesterov = true, .momentum = 0.5f}), half);
  EXPECT_FLOAT_EQ(nesterov.weights, 8.0f);
  EXPECT_FLOAT_EQ(nesterov.start, 7.5f);  // w - eta v
}

TEST(BlockMomentum, CntkConventionMatchesTwoRoundsByHand) {
  // Two partitions, full blocks: eta = 1/2, gain of the mean (1 - 1/2) * 2 = 1. v = 2, then 2.
  const Numbers cbm = AfterTwoRounds(*Block({.convention = BlockConvention::kCntk}), Samples(100));
  EXPECT_FLOAT_EQ(cbm.velocity, 2.0f);
  EXPECT_FLOAT_EQ(cbm.start, 6.0f);
  // s = 10 - 2 - 1 = 7, then 7 - 2 - 1.
  const Numbers nesterov = AfterTwoRounds(
      *Block({.convention = BlockConvention::kCntk, .nesterov = true}), Samples(100));
  EXPECT_FLOAT_EQ(nesterov.start, 4.0f);
  EXPECT_FLOAT_EQ(nesterov.weights, 4.0f);
}

TEST(BlockMomentum, CntkMomentumFollowsTheSamplesOfTheRound) {
  // Half a block of two partitions: eta = sqrt(1/2).
  const Numbers half = AfterTwoRounds(*Block({.convention = BlockConvention::kCntk}), Samples(50));
  const double eta = std::sqrt(0.5);
  const double v = eta * (1 - eta) * 2 * 2.0 + (1 - eta) * 2 * 1.0;
  EXPECT_NEAR(static_cast<double>(half.velocity), v, 1e-6);
  // A time constant that is given: eta = exp(-100 / 200).
  const Numbers given = AfterTwoRounds(
      *Block({.convention = BlockConvention::kCntk, .time_constant = 200}), Samples(100, 2, 3.0f));
  const double e = std::exp(-0.5);
  EXPECT_NEAR(static_cast<double>(given.velocity), 6 * (1 - e) * (e * 2 + 1), 1e-5);
}

TEST(BlockMomentum, CntkWithOnePartitionHasNoMomentum) {
  const auto rule = Block({.convention = BlockConvention::kCntk}, 1, 100);
  Chunk chunk({10.0f});
  for (int i = 0; i < 3; ++i) chunk.Round(*rule, Samples(100, 1), {200.0f});
  EXPECT_FLOAT_EQ(chunk.start[0], 4.0f);  // averaging: - G each round
}

TEST(BlockMomentum, WithoutMomentumAndRateOneIsAveragingToTheBit) {
  for (const bool nesterov : {false, true}) {
    const auto block = Block({.nesterov = nesterov, .momentum = 0.0f});
    const auto average = MakeAverageRule();
    Chunk a(Normal(700, 5));
    Chunk b = a;
    for (uint64_t round = 0; round < 10; ++round) {
      const std::vector<float> sum = Normal(700, 20 + round);
      a.Round(*block, Samples(37), sum);
      b.Round(*average, Samples(37), sum);
      ASSERT_EQ(a.start, b.start);
      ASSERT_EQ(a.evaluated(*block), b.start);
    }
  }
}

TEST(BlockMomentum, PaperNesterovWalksAsPyTorchsNesterovSgd) {
  const float zeta = 0.7f;
  const float eta = 0.9f;
  const auto rule = Block({.nesterov = true, .momentum = eta});
  Chunk chunk({3.0f});
  double s = 3.0;
  double buffer = 0.0;
  Rng rng(6, RngPurpose::kTest);
  for (int round = 0; round < 50; ++round) {
    const float g = rng.NextNormal();
    chunk.Round(*rule, Samples(64, 2, zeta), {64.0f * g});
    buffer = static_cast<double>(eta) * buffer + static_cast<double>(g);
    s -= static_cast<double>(zeta) * (static_cast<double>(g) + static_cast<double>(eta) * buffer);
    ASSERT_NEAR(static_cast<double>(chunk.start[0]), s, 2e-5) << "round " << round;
  }
}

TEST(SlowMo, MatchesThreeRoundsByHandAndKeepsItsStepWhenTheRateChanges) {
  // beta .5, alpha 2, r = .1: v = 20, then .5 * 20 + 10 = 20, each a step of 2 * .1 * 20.
  const auto rule = Block({.rule = BlockRule::kSlowMo, .momentum = 0.5f});
  RoundInfo info = Samples(100, 2, 2.0f);
  const Numbers after = AfterTwoRounds(*rule, info);
  EXPECT_FLOAT_EQ(after.velocity, 20.0f);
  EXPECT_FLOAT_EQ(after.start, 2.0f);
  // At a tenth of the rate the old momentum weighs a tenth: v = 20, then 10 + 10.
  Chunk chunk({10.0f});
  chunk.Round(*rule, info, {200.0f});
  info.learning_rate = 0.01f;
  chunk.Round(*rule, info, {10.0f});
  EXPECT_FLOAT_EQ(chunk.start[0], 6.0f - 2 * 0.01f * 20.0f);
  // Without a rate nothing has moved, and nothing moves.
  const Chunk before = chunk;
  info.learning_rate = 0.0f;
  chunk.Round(*rule, info, {0.0f});
  EXPECT_EQ(chunk.start, before.start);
  EXPECT_FLOAT_EQ(chunk.slots[0][0], 10.0f);
}

TEST(SlowMo, WithoutMomentumAndAtRateOneIsAveraging) {
  const auto slowmo = Block({.rule = BlockRule::kSlowMo, .momentum = 0.0f});
  const auto average = MakeAverageRule();
  for (const float rate : {1e-30f, 0.003f, 1.0f}) {
    Chunk a(Normal(700, 5));
    Chunk b = a;
    for (uint64_t round = 0; round < 10; ++round) {
      const std::vector<float> sum = Normal(700, 20 + round);
      RoundInfo info = Samples(37);
      info.learning_rate = rate;
      a.Round(*slowmo, info, sum);
      b.Round(*average, info, sum);
      for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(a.start[i], b.start[i], 1e-6);
    }
  }
}

// With blocks of one step of plain SGD at rate 1, G is the mean gradient.
TEST(AdamWRule, StepsAlongBlocksOfOneStepAsGradientModeDoes) {
  BlockRuleSettings block = {.rule = BlockRule::kAdamW};
  OptimiserSettings adamw;
  adamw.type = OptimiserType::kAdamW;
  block.beta1 = adamw.beta1 = 0.8f;
  block.beta2 = adamw.beta2 = 0.95f;
  block.epsilon = adamw.epsilon = 1e-5f;
  const auto in_blocks = Block(block);
  const auto in_gradients = MakeGradientRule(adamw);
  Chunk a(Normal(700, 5));
  Chunk b = a;
  for (int64_t step = 1; step <= 10; ++step) {
    RoundInfo info = Samples(37, 2, step < 5 ? 0.1f : 0.01f);
    info.learning_rate = info.block_rate;
    info.step = step;
    info.weight_decay = 0.1f;
    info.factors.decay = 0.5f;
    const std::vector<float> sum = Normal(700, 20 + static_cast<uint64_t>(step));
    a.Round(*in_blocks, info, sum);
    b.Round(*in_gradients, info, sum);
    ASSERT_EQ(a.start, b.start);
  }
  // A layer's learning-rate factor is part of the block's step.
  RoundInfo info = Samples(37);
  info.step = 11;
  Chunk c = a;
  a.Round(*in_blocks, info, Normal(700, 1));
  info.factors.rate = 0.1f;
  c.Round(*in_blocks, info, Normal(700, 1));
  EXPECT_EQ(a.start, c.start);
}

// A job's memory and checkpoints are worked out from the traits.
TEST(BlockRules, HaveTheirTraits) {
  for (const BlockRuleSettings& settings : AllBlockSettings()) {
    const auto rule = Block(settings);
    const BlockRuleTraits traits = TraitsOf(settings);
    EXPECT_EQ(rule->name(), WordOf(settings.rule));
    EXPECT_EQ(rule->slots(), traits.slots) << rule->name();
    EXPECT_EQ(rule->keeps_weights_apart(), traits.keeps_weights_apart) << rule->name();
    EXPECT_EQ(traits.state.empty(), traits.slots == 0) << rule->name();
    EXPECT_LE(traits.slots, Optimiser::kMaxSlots) << rule->name();
  }
}

// Workers that get the contributions make the next weights from this trait.
TEST(BlockRules, ThoseThatAverageSubtractTheMeanAndKeepNothing) {
  for (const BlockRuleSettings& settings : AllBlockSettings()) {
    if (!TraitsOf(settings).averages) continue;
    const auto rule = Block(settings);
    EXPECT_EQ(rule->slots(), 0);
    EXPECT_FALSE(rule->keeps_weights_apart());
    RoundInfo info = Samples(7);
    info.block_rate = 0.3f;
    info.weight_decay = 0.1f;
    const std::vector<float> sum = Normal(300, 1);
    Chunk chunk(Normal(300, 2));
    std::vector<float> expected = chunk.start;
    const float scale = 1.0f / 7.0f;
    for (size_t i = 0; i < sum.size(); ++i) expected[i] -= scale * sum[i];
    chunk.Round(*rule, info, sum);
    EXPECT_EQ(chunk.start, expected);
  }
}

TEST(BlockMomentum, KeepsTheWeightsApartOnlyForThePapersNesterov) {
  for (const BlockRuleSettings& settings : AllBlockSettings()) {
    const bool apart = settings.rule == BlockRule::kBlockMomentum &&
                       settings.convention == BlockConvention::kPaper && settings.nesterov;
    EXPECT_EQ(Block(settings)->keeps_weights_apart(), apart);
  }
}

TEST(AveragedRule, TrainsAsItsRuleDoesAndAveragesTheWeights) {
  constexpr size_t kNumbers = 1500;
  for (const RuleCase& plain : PlainRules()) {
    SCOPED_TRACE(plain.name);
    const auto rule = plain.make(DetectIsa());
    const auto averaged = MakeAveragedRule(plain.make(DetectIsa()));
    EXPECT_EQ(averaged->slots(), rule->slots());
    Chunk a(Normal(kNumbers, 1));
    Chunk b = a;
    std::vector<double> mean(a.start.begin(), a.start.end());
    for (int64_t step = 1; step <= 8; ++step) {
      RoundInfo info = Samples(100);
      info.step = step;
      info.average_share = step == 1 ? 1.0f : 0.25f;
      const std::vector<float> sum = Normal(kNumbers, 40 + static_cast<uint64_t>(step));
      a.Round(*rule, info, sum);
      b.Round(*averaged, info, sum);
      const double share = static_cast<double>(info.average_share);
      for (size_t i = 0; i < kNumbers; ++i) {
        mean[i] += share * (static_cast<double>(a.evaluated(*rule)[i]) - mean[i]);
        ASSERT_NEAR(static_cast<double>(b.weights[i]), mean[i], 2e-5) << step;
        ASSERT_NEAR(b.start[i], a.start[i], rule->keeps_weights_apart() ? 2e-5f : 0.0f);
      }
      if (rule->keeps_weights_apart()) continue;
      ASSERT_EQ(b.start, a.start);
      for (int s = 0; s < Optimiser::kMaxSlots; ++s) ASSERT_EQ(b.slots[s], a.slots[s]);
    }
  }
}

// The weights beside a moving average are s + eta v of the present eta (Adapt in
// common/checkpoint/continuation.h converts the starts of a checkpoint so).
TEST(AveragedRule, AnotherLookAheadContinuesFromTheSameWeights) {
  const float before = 0.5f;
  for (const float after : {0.9f, 0.25f, 0.0f}) {
    const auto then = Block({.nesterov = true, .momentum = before});
    const auto now = Block({.nesterov = after > 0, .momentum = after > 0 ? after : before});
    const auto averaged =
        MakeAveragedRule(Block({.nesterov = after > 0, .momentum = after > 0 ? after : before}));
    Chunk a({3.0f});
    for (const float sum : {64.0f, -20.0f, 100.0f}) a.Round(*then, Samples(64), {sum});
    Chunk b = a;
    b.start[0] += (before - after) * b.slots[0][0];
    if (after == 0) a.start = a.weights;
    for (const float sum : {30.0f, -90.0f}) {
      a.Round(*now, Samples(64), {sum});
      b.Round(*averaged, Samples(64), {sum});
      EXPECT_NEAR(b.start[0], a.start[0], 1e-5f) << after;
      EXPECT_NEAR(b.weights[0], a.evaluated(*now)[0], 1e-5f) << after;
    }
  }
}

TEST(AveragedRule, KeepsTheWeightsToTheBitIfTheShareIsOne) {
  const auto rule = MakeAveragedRule(MakeAverageRule());
  Chunk chunk(Normal(300, 1));
  chunk.Round(*rule, Samples(100), Normal(300, 2));
  EXPECT_EQ(chunk.weights, chunk.start);
}

TEST(AverageShare, ForgetsTheStartAndDoesNotDependOnTheCutIntoRounds) {
  EXPECT_GT(AverageShare(1e9, 100, 100), 0.9999f);  // the initial weights count for nothing
  // A tenth of the samples so far.
  EXPECT_FLOAT_EQ(AverageShare(1e9, 1000, 10), -std::expm1(-0.1f));
  EXPECT_FLOAT_EQ(AverageShare(500, 1000000, 10), -std::expm1(-0.02f));
  const float once = AverageShare(500, 1000000, 20);
  const float twice = 1 - AverageShare(500, 1000000, 10);
  EXPECT_FLOAT_EQ(1 - once, twice * twice);
}

TEST(GradientRule, StepsItsOptimiserAlongTheMean) {
  OptimiserSettings settings;
  settings.type = OptimiserType::kMomentum;
  settings.momentum = 0.5f;
  const auto rule = MakeGradientRule(settings);
  // .1 (2), then .1 (.5 * 2 + 1).
  const Numbers after = AfterTwoRounds(*rule, Samples(64));
  EXPECT_FLOAT_EQ(after.start, 9.6f);
  EXPECT_FLOAT_EQ(after.velocity, 2.0f);
}

TEST(GradientRule, TheRoundsMomentumComesBeforeTheOptimisers) {
  OptimiserSettings settings;
  settings.type = OptimiserType::kMomentum;
  settings.momentum = 0.9f;
  const auto rule = MakeGradientRule(settings);
  RoundInfo info = Samples(64);
  info.momentum = 0.5f;
  const Numbers after = AfterTwoRounds(*rule, info);
  EXPECT_FLOAT_EQ(after.start, 9.6f);
  EXPECT_FLOAT_EQ(after.velocity, 2.0f);
}

TEST(GradientRule, SgdOnTheMeanIsAveragingOfOneStep) {
  // Averaging w_i = s - lr g_i is one step of SGD along the mean gradient.
  OptimiserSettings settings;
  settings.type = OptimiserType::kSgd;
  const auto sgd = MakeGradientRule(settings);
  const auto average = MakeAverageRule();
  Chunk a(Normal(100, 7));
  Chunk b = a;
  std::vector<float> gradient = Normal(100, 8);
  std::vector<float> steps = gradient;
  for (float& x : steps) x *= 0.1f;
  a.Round(*sgd, Samples(1), gradient);
  b.Round(*average, Samples(1), steps);
  for (size_t i = 0; i < 100; ++i) EXPECT_FLOAT_EQ(a.start[i], b.start[i]);
}

}  // namespace
}  // namespace kumo
