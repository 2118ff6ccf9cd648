#include "data/permutation.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

std::vector<int64_t> Order(int64_t n, uint64_t seed, int64_t epoch) {
  const EpochPermutation permutation(n, seed, epoch);
  std::vector<int64_t> order(n);
  for (int64_t i = 0; i < n; ++i) order[i] = permutation.At(i);
  return order;
}

void ExpectBijection(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<bool> seen(n, false);
  for (const int64_t sample : Order(n, seed, epoch)) {
    ASSERT_GE(sample, 0) << n;
    ASSERT_LT(sample, n);
    ASSERT_FALSE(seen[sample]) << "sample " << sample << " of " << n << " comes twice";
    seen[sample] = true;
  }
}

// Sum over cells of (count - expected)^2 / expected.
double ChiSquare(const std::vector<int64_t>& counts) {
  const double total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int64_t count : counts) {
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) /
           expected;
  }
  return sum;
}

// What chi square exceeds about once in 30,000 tries: its mean is the degrees of freedom, its
// variance twice that. Seeds are fixed, so a test passes always or never.
double ChiSquareLimit(double cells) { return cells - 1 + 4.5 * std::sqrt(2 * (cells - 1)) + 4; }

TEST(EpochPermutationTest, VisitsEachSampleOnceForEverySmallSize) {
  for (int64_t n = 1; n <= 600; ++n) {
    for (int64_t epoch = 0; epoch < 3; ++epoch) ExpectBijection(n, 7, epoch);
  }
}

TEST(EpochPermutationTest, VisitsEachSampleOnceForLargeSizesAroundPowersOfTwo) {
  for (const int64_t n : {1023, 1024, 1025, 60000, 65535, 65536, 65537, 131073, 1000003}) {
    ExpectBijection(n, 1, 5);
  }
}

TEST(EpochPermutationTest, StaysInsideSetsTooLargeToCount) {
  for (const int64_t n : {(int64_t{1} << 31) + 1, (int64_t{1} << 40) - 1, (int64_t{1} << 62) + 3}) {
    const EpochPermutation permutation(n, 3, 0);
    std::map<int64_t, int64_t> seen;
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t position = i * (n / 1000);
      const int64_t sample = permutation.At(position);
      ASSERT_GE(sample, 0);
      ASSERT_LT(sample, n);
      ASSERT_TRUE(seen.emplace(sample, position).second);
    }
  }
}

TEST(EpochPermutationTest, IsTheSameWhoeverAsks) {
  EXPECT_EQ(Order(1000, 42, 3), Order(1000, 42, 3));
}

TEST(EpochPermutationTest, NeverChangesBetweenVersionsOfTheProgram) {
  // The order is part of a job's mathematics; checkpoints of an older program rely on it.
  EXPECT_THAT(Order(10, 1, 0), testing::ElementsAreArray({6, 3, 1, 8, 5, 7, 0, 4, 2, 9}));
  const EpochPermutation mnist(60000, 1, 1);
  const std::vector<int64_t> first = {mnist.At(0), mnist.At(1), mnist.At(59999)};
  EXPECT_THAT(first, testing::ElementsAreArray({48213, 16781, 6619}));
}

TEST(EpochPermutationTest, DiffersByEpochAndBySeed) {
  const auto reference = Order(1000, 1, 0);
  for (const auto& [seed, epoch] : {std::pair<uint64_t, int64_t>{1, 1}, {1, 2}, {2, 0}, {3, 0}}) {
    const auto other = Order(1000, seed, epoch);
    int64_t equal = 0;
    for (size_t i = 0; i < other.size(); ++i) equal += other[i] == reference[i];
    // One position in a thousand agrees by chance, so about one of them.
    EXPECT_LE(equal, 8) << "seed " << seed << " epoch " << epoch;
  }
}

TEST(EpochPermutationTest, ASampleStandsAtEveryPositionEquallyOften) {
  for (const int64_t n : {2, 3, 5, 10, 16, 17, 100}) {
    for (const int64_t position : {int64_t{0}, n / 2, n - 1}) {
      std::vector<int64_t> counts(n, 0);
      for (int64_t epoch = 0; epoch < 400 * n; ++epoch) {
        ++counts[EpochPermutation(n, 11, epoch).At(position)];
      }
      EXPECT_LT(ChiSquare(counts), ChiSquareLimit(static_cast<double>(n)))
          << "n " << n << " position " << position;
    }
  }
}

TEST(EpochPermutationTest, AllOrdersOfFewSamplesAreEquallyLikely) {
  std::map<std::vector<int64_t>, int64_t> seen;
  for (int64_t epoch = 0; epoch < 24 * 400; ++epoch) ++seen[Order(4, 5, epoch)];
  ASSERT_EQ(seen.size(), 24u);
  std::vector<int64_t> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  EXPECT_LT(ChiSquare(counts), ChiSquareLimit(24));
}

TEST(EpochPermutationTest, NeighboursAreScatteredOverTheWholeSet) {
  constexpr int64_t kSamples = 60000;
  constexpr int64_t kCells = 60;
  const auto order = Order(kSamples, 1, 0);
  // The distance between the samples of neighbouring positions, cyclically, is uniform.
  std::vector<int64_t> distances(kCells, 0);
  for (int64_t i = 0; i + 1 < kSamples; ++i) {
    const int64_t distance = (order[i + 1] - order[i] + kSamples) % kSamples;
    ++distances[distance * kCells / kSamples];
  }
  EXPECT_LT(ChiSquare(distances), ChiSquareLimit(kCells));
  // Each stretch of the epoch draws from all parts of the set.
  for (int64_t begin = 0; begin < kSamples; begin += 6000) {
    std::vector<int64_t> parts(kCells, 0);
    for (int64_t i = begin; i < begin + 6000; ++i) ++parts[order[i] * kCells / kSamples];
    EXPECT_LT(ChiSquare(parts), ChiSquareLimit(kCells)) << "from position " << begin;
  }
  // Rank correlation of position and sample: 0 within 4 of its deviations, 1 / sqrt(n).
  double sum = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    sum +=
        (static_cast<double>(i) / kSamples - .5) * (static_cast<double>(order[i]) / kSamples - .5);
  }
  EXPECT_LT(std::abs(sum / kSamples * 12), 4 / std::sqrt(kSamples));
}

}  // namespace
}  // namespace kumo
