#include "server/rules/aggregate.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

std::vector<float> NormalNumbers(size_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> numbers(n);
  for (float& x : numbers) x = rng.NextNormal();
  return numbers;
}

// What k partitions send for a chunk of n numbers, with different codecs and weights.
struct Round {
  Round(size_t n, size_t k, uint64_t seed) {
    Rng rng(seed, RngPurpose::kTest, 1);
    for (size_t i = 0; i < k; ++i) {
      const Codec* codec = AllCodecs()[rng.NextBelow(AllCodecs().size())];
      bytes.emplace_back(codec->EncodedBytes(n));
      EXPECT_EQ(codec->Encode(NormalNumbers(n, seed * 100 + i), {}, bytes.back()), -1);
      contributions.push_back({static_cast<int64_t>(rng.NextBelow(5000)), codec, bytes.back()});
      info.samples += contributions.back().weight;
    }
    info.partitions = static_cast<int>(k);
    info.learning_rate = 0.1f;
  }

  std::vector<std::vector<std::byte>> bytes;
  std::vector<CodedContribution> contributions;
  RoundInfo info;
};

struct Arrays {
  explicit Arrays(size_t n)
      : start(NormalNumbers(n, 1)), next_start(n), weights(NormalNumbers(n, 2)), next_weights(n) {
    slots[0] = NormalNumbers(n, 3);
    slots[1] = NormalNumbers(n, 4);
    for (float& x : slots[1]) x *= x;
  }
  RuleArrays chunk(const Rule& rule, bool stream = false) {
    const bool apart = rule.keeps_weights_apart();
    return {.n = start.size(),
            .start = start.data(),
            .next_start = next_start.data(),
            .weights = apart ? weights.data() : nullptr,
            .next_weights = apart ? next_weights.data() : nullptr,
            .slots = {slots[0].data(), slots[1].data()},
            .stream = stream};
  }
  bool operator==(const Arrays&) const = default;

  std::vector<float> start, next_start, weights, next_weights;
  std::vector<float> slots[2];
};

std::unique_ptr<Rule> SomeRule(uint64_t seed) {
  if (seed % 4 == 0) return MakeAverageRule();
  if (seed % 4 == 1) return MakeGradientRule({.type = OptimiserType::kAdam});
  return MakeBlockRule({.nesterov = seed % 4 == 2}, 4, 1000);
}

const std::vector<size_t> kLengths = {1, 511, 1024, 1025, 5000};

TEST(Aggregate, BitsDoNotDependOnHowContributionsAreSpreadOverCalls) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const size_t n = kLengths[seed % kLengths.size()];
    Round round(n, 1 + seed % 7, seed);
    const auto rule = SomeRule(seed);
    Arrays at_once(n);
    AggregateAndApply(*rule, round.info, nullptr, round.contributions, at_once.chunk(*rule));

    // The same in random groups; the last one goes with the update, and may be empty.
    Rng rng(seed, RngPurpose::kTest, 2);
    std::vector<float> sum(n, 0.0f);
    std::span<const CodedContribution> rest = round.contributions;
    while (!rest.empty() && rng.NextBelow(3) != 0) {
      const size_t group = 1 + rng.NextBelow(rest.size());
      Accumulate(rest.first(group), sum);
      rest = rest.subspan(group);
    }
    Arrays grouped(n);
    AggregateAndApply(*rule, round.info, sum.data(), rest, grouped.chunk(*rule, seed % 2 == 0));
    ASSERT_EQ(at_once, grouped) << "seed " << seed;
  }
}

// Plain contributions are added in registers, or by tiles if there are many of them.
TEST(Aggregate, PlainContributionsGiveTheSameBitsAtEveryLevel) {
  const Codec& fp32 = CodecOf(CodecId::kFp32);
  const BlockRuleSettings nesterov = {.nesterov = true};
  for (const size_t n : {size_t{1}, size_t{37}, size_t{1024}, size_t{3001}}) {
    for (size_t count = 0; count <= 10; ++count) {
      std::vector<std::vector<std::byte>> bytes;
      std::vector<CodedContribution> contributions;
      int64_t samples = 0;
      for (size_t k = 0; k < count; ++k) {
        std::vector<float> numbers = NormalNumbers(n, 10 * count + k);
        numbers[0] = -0.0f;
        bytes.emplace_back(4 * n + 1);
        const auto unaligned = std::span(bytes.back()).subspan(1);
        ASSERT_EQ(fp32.Encode(numbers, {}, unaligned), -1);
        contributions.push_back({static_cast<int64_t>(k % 4) * 100, &fp32, unaligned});
        samples += contributions.back().weight;
      }
      const RoundInfo info = {.samples = samples, .partitions = 4};
      std::vector<float> sum(n, 0.0f);
      Accumulate(contributions, sum);
      std::vector<float> first(n, 0.0f);
      Accumulate(std::span(contributions).first(count / 2), first);
      for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
        if (isa > DetectIsa()) continue;
        std::vector<std::unique_ptr<Rule>> rules;
        rules.push_back(MakeAverageRule(isa));
        rules.push_back(MakeBlockRule({}, 4, 1000, isa));
        rules.push_back(MakeBlockRule(nesterov, 4, 1000, isa));
        rules.push_back(MakeGradientRule({.type = OptimiserType::kAdam}, isa));
        rules.push_back(MakeAveragedRule(MakeBlockRule({}, 4, 1000, isa), isa));
        for (const auto& rule : rules) {
          Arrays expected(n), at_once(n), in_two(n);
          AggregateAndApply(*rule, info, sum.data(), {}, expected.chunk(*rule));
          AggregateAndApply(*rule, info, nullptr, contributions, at_once.chunk(*rule));
          AggregateAndApply(*rule, info, first.data(), std::span(contributions).subspan(count / 2),
                            in_two.chunk(*rule, /*stream=*/true));
          EXPECT_EQ(at_once, expected) << rule->name() << ", " << count << " of " << n;
          EXPECT_EQ(in_two, expected) << rule->name() << ", " << count << " of " << n;
        }
      }
    }
  }
}

TEST(Aggregate, AddsInTheOrderGivenToTheBit) {
  int by_order = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const size_t n = kLengths[seed % kLengths.size()];
    Round round(n, 5, seed);
    std::vector<float> expected(n, 0.0f);
    for (const CodedContribution& contribution : round.contributions) {
      std::vector<float> decoded(n);
      contribution.codec->Decode(contribution.bytes, n, 0, decoded);
      for (size_t i = 0; i < n; ++i) {
        const volatile float product = static_cast<float>(contribution.weight) * decoded[i];
        expected[i] += product;
      }
    }
    std::vector<float> sum(n, 0.0f);
    Accumulate(round.contributions, sum);
    ASSERT_EQ(sum, expected);
    // And the order matters, unless contributions have no number in common (topk).
    std::swap(round.contributions[0], round.contributions[3]);
    std::vector<float> swapped(n, 0.0f);
    Accumulate(round.contributions, swapped);
    by_order += swapped != expected;
  }
  EXPECT_GT(by_order, 5) << "this test cannot fail";
}

TEST(Aggregate, TakesTheMeanBySamples) {
  const Codec& fp32 = CodecOf(CodecId::kFp32);
  std::vector<std::byte> one(4), four(4);
  ASSERT_EQ(fp32.Encode(std::vector<float>{1.0f}, {}, one), -1);
  ASSERT_EQ(fp32.Encode(std::vector<float>{4.0f}, {}, four), -1);
  const CodedContribution contributions[] = {{200, &fp32, one}, {100, &fp32, four}};
  const float start = 10.0f;
  float next = 0.0f;
  AggregateAndApply(*MakeAverageRule(), {.samples = 300, .partitions = 2}, nullptr, contributions,
                    {.n = 1, .start = &start, .next_start = &next});
  EXPECT_FLOAT_EQ(next, 8.0f);  // 10 - (200 * 1 + 100 * 4) / 300
}

// As a loss that divides by something else than samples has it.
TEST(Aggregate, TakesTheMeanByWeightWhereThatIsGiven) {
  const Codec& fp32 = CodecOf(CodecId::kFp32);
  std::vector<std::byte> one(4), four(4);
  ASSERT_EQ(fp32.Encode(std::vector<float>{1.0f}, {}, one), -1);
  ASSERT_EQ(fp32.Encode(std::vector<float>{4.0f}, {}, four), -1);
  const float start = 10.0f;
  const auto next_of = [&](int64_t first, int64_t second) {
    const CodedContribution contributions[] = {{first, &fp32, one}, {second, &fp32, four}};
    float next = 0.0f;
    AggregateAndApply(*MakeAverageRule(),
                      {.samples = 300, .weight = first + second, .partitions = 2}, nullptr,
                      contributions, {.n = 1, .start = &start, .next_start = &next});
    return next;
  };
  EXPECT_FLOAT_EQ(next_of(1, 2), 7.0f);  // 10 - (1 * 1 + 2 * 4) / 3
  EXPECT_FLOAT_EQ(next_of(5, 0), 9.0f);
  EXPECT_EQ(next_of(0, 0), start) << "the mean is 0";
}

TEST(Aggregate, APartitionWithoutSamplesAddsNothingWhateverItsBytes) {
  const size_t n = 600;
  Round round(n, 3, 8);
  round.contributions[1].weight = 0;
  std::vector<float> with(n, 0.0f);
  Accumulate(round.contributions, with);
  const std::vector<std::byte> nonsense(round.bytes[1].size(), std::byte{0xff});
  round.contributions[1].bytes = nonsense;
  std::vector<float> with_nonsense(n, 0.0f);
  Accumulate(round.contributions, with_nonsense);
  EXPECT_EQ(with, with_nonsense);
}

TEST(Aggregate, ARoundWithoutSamplesCopiesTheWeights) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto rule = SomeRule(seed);
    Arrays arrays(1500);
    const Arrays before = arrays;
    AggregateAndApply(*rule, {.samples = 0}, nullptr, {}, arrays.chunk(*rule));
    EXPECT_EQ(arrays.next_start, before.start);
    EXPECT_EQ(arrays.slots[0], before.slots[0]);
    EXPECT_EQ(arrays.slots[1], before.slots[1]);
    EXPECT_TRUE(!rule->keeps_weights_apart() || arrays.next_weights == before.weights);
  }
}

TEST(Aggregate, AChunkCutAtATileGivesTheBitsOfTheWhole) {
  // The update is per element: how a shard cuts its vector into chunks changes nothing.
  const size_t n = 3000;
  const size_t cut = 1024;
  const Codec& codec = CodecOf(CodecId::kOneBit);
  const std::vector<float> x = NormalNumbers(n, 9);
  std::vector<std::byte> bytes(codec.EncodedBytes(n));
  ASSERT_EQ(codec.Encode(x, {}, bytes), -1);
  const auto rule = MakeBlockRule({}, 1, 100);
  const RoundInfo info = {.samples = 100};
  Arrays whole(n);
  Arrays parts(n);
  const CodedContribution all = {100, &codec, bytes};
  AggregateAndApply(*rule, info, nullptr, {&all, 1}, whole.chunk(*rule));
  for (const auto& [first, count] : {std::pair{size_t{0}, cut}, std::pair{cut, n - cut}}) {
    const CodedContribution part = {
        100, &codec,
        std::span(bytes).subspan(codec.EncodedBytes(first), codec.EncodedBytes(count))};
    AggregateAndApply(*rule, info, nullptr, {&part, 1},
                      {.n = count,
                       .start = parts.start.data() + first,
                       .next_start = parts.next_start.data() + first,
                       .slots = {parts.slots[0].data() + first}});
  }
  EXPECT_EQ(whole.next_start, parts.next_start);
  EXPECT_EQ(whole.slots[0], parts.slots[0]);
}

}  // namespace
}  // namespace kumo
