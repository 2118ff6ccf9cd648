#include "common/base/rng.h"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers that the authors of Philox publish with their library, Random123.
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, AStreamRepeatsItselfAndACopyGoesOnFromItsPlace) {
  Rng one(5, RngPurpose::kTest, 1, 2, 3);
  Rng same(5, RngPurpose::kTest, 1, 2, 3);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(one.NextUint32(), same.NextUint32());
  (void)one.NextNormal();  // leaves a spare one
  Rng copy = one;
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(one.NextNormal(), copy.NextNormal());
    ASSERT_EQ(one.NextUint64(), copy.NextUint64());
  }
}

TEST(Rng, GoesOnFromAnyPlaceOfItsStream) {
  std::vector<uint32_t> words(40);
  Rng stream(5, RngPurpose::kTest, 1, 2, 3);
  for (uint32_t& word : words) word = stream.NextUint32();
  for (const size_t n : {0, 1, 3, 4, 17, 16, 38}) {
    stream.MoveTo(n);
    EXPECT_EQ(stream.NextUint32(), words[n]) << n;
    EXPECT_EQ(stream.NextUint32(), words[n + 1]) << n;
  }
  // Beyond 2^32 blocks of 4 words the counter's second word counts on.
  stream.MoveTo(4 * (uint64_t{1} << 32) - 1);
  stream.NextUint32();
  const uint32_t behind = stream.NextUint32();
  stream.MoveTo(4 * (uint64_t{1} << 32));
  EXPECT_EQ(stream.NextUint32(), behind);
}

TEST(Rng, StreamsOfDifferentNamesDiffer) {
  std::set<uint64_t> first;
  size_t streams = 0;
  const auto add = [&](Rng rng) {
    first.insert(rng.NextUint64());
    ++streams;
  };
  const RngPurpose purposes[] = {RngPurpose::kInitialWeights, RngPurpose::kShuffle,
                                 RngPurpose::kDropout, RngPurpose::kTest};
  for (const RngPurpose purpose : purposes) {
    for (uint64_t seed : {0, 1, 2}) {
      for (uint64_t a = 0; a < 6; ++a) {
        for (uint64_t b = 0; b < 6; ++b) {
          for (uint64_t c = 0; c < 6; ++c) add(Rng(seed, purpose, a, b, c));
        }
      }
    }
  }
  EXPECT_EQ(first.size(), streams);
}

TEST(Rng, NumbersBelowABoundAreBelowItAndEquallyLikely) {
  Rng rng(3, RngPurpose::kTest);
  for (const uint64_t bound : {1, 2, 3, 7, 10, 64}) {
    constexpr int kDraws = 60'000;
    std::vector<int> counts(bound);
    for (int i = 0; i < kDraws; ++i) ++counts.at(rng.NextBelow(bound));
    const double expected = static_cast<double>(kDraws) / static_cast<double>(bound);
    double chi2 = 0;
    for (const int count : counts) chi2 += (count - expected) * (count - expected) / expected;
    // Six deviations above the mean of a chi-squared distribution.
    const double freedom = static_cast<double>(bound - 1);
    EXPECT_LE(chi2, freedom + 6 * std::sqrt(2 * freedom) + 1e-9) << bound;
  }
}

TEST(Rng, LargeBoundsAreNotBiasedTowardsSmallNumbers) {
  // Taking 64 bits modulo 3/4 2^64 would make the lower third twice as likely: half of all draws
  // instead of a third.
  constexpr uint64_t kBound = uint64_t{3} << 62;
  Rng rng(4, RngPurpose::kTest);
  int low = 0;
  for (int i = 0; i < 30'000; ++i) {
    const uint64_t value = rng.NextBelow(kBound);
    ASSERT_LT(value, kBound);
    low += value < kBound / 3;
  }
  EXPECT_NEAR(low, 10'000, 500);
}

TEST(Rng, UniformNumbersFillTheUnitInterval) {
  Rng rng(5, RngPurpose::kTest);
  std::vector<int> tenths(10);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const float u = rng.NextUniform();
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    ++tenths[static_cast<int>(u * 10)];
    sum += u;
  }
  for (const int count : tenths) EXPECT_NEAR(count, 10'000, 600);
  EXPECT_NEAR(sum / 100'000, 0.5, 0.006);
  for (int i = 0; i < 1000; ++i) {
    const float u = rng.NextUniform(-3, 5);
    ASSERT_GE(u, -3.0f);
    ASSERT_LT(u, 5.0f);
  }
}

TEST(Rng, NormalNumbersAreNormal) {
  Rng rng(6, RngPurpose::kTest);
  constexpr int kDraws = 100'000;
  double sum = 0;
  double squares = 0;
  double products = 0;  // of neighbours, which come from one pair
  int within_one = 0;
  float before = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float x = rng.NextNormal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += static_cast<double>(x) * x;
    products += static_cast<double>(x) * before;
    within_one += std::abs(x) < 1;
    before = x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
  EXPECT_NEAR(products / kDraws, 0, 0.02);
  EXPECT_NEAR(within_one, 0.6827 * kDraws, 0.01 * kDraws);
}

}  // namespace
}  // namespace kumo
