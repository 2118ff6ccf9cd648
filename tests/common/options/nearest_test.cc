#include "common/options/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/options/option_table.h"
#include "common/rng.h"

namespace kumo {
namespace {

std::string RandomWord(Rng* rng) {
  std::string word(rng->NextBelow(8), ' ');
  for (char& c : word) c = static_cast<char>('a' + rng->NextBelow(3));
  return word;
}

TEST(EditDistance, MatchesKnownPairs) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("blcok", "block"), 1);  // neighbours swapped
}

TEST(EditDistance, IsSymmetricAndZeroOnlyForEqualWordsAndBoundedByLengths) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 2000; ++i) {
    const std::string a = RandomWord(&rng), b = RandomWord(&rng);
    const int distance = EditDistance(a, b);
    EXPECT_EQ(distance, EditDistance(b, a)) << a << " " << b;
    EXPECT_EQ(distance == 0, a == b) << a << " " << b;
    EXPECT_LE(distance, static_cast<int>(std::max(a.size(), b.size())));
    EXPECT_GE(distance, std::abs(static_cast<int>(a.size()) - static_cast<int>(b.size())));
  }
}

TEST(Nearest, FindsEveryKeyWithOneLetterMissing) {
  const OptionTable table;
  for (const std::string& key : table.keys()) {
    for (size_t i = 0; i < key.size(); ++i) {
      std::string mistyped = key;
      mistyped.erase(i, 1);
      const std::string found = Nearest(mistyped, table.keys());
      // Another key may be as near (beta1, beta2), but never farther.
      ASSERT_FALSE(found.empty()) << mistyped;
      EXPECT_LE(EditDistance(mistyped, found), 1) << mistyped << " -> " << found;
    }
  }
}

TEST(Nearest, FindsAKeyWhoseSectionIsMissingOrWrong) {
  const OptionTable table;
  EXPECT_EQ(Nearest("partitions", table.keys()), "sync.partitions");
  EXPECT_EQ(Nearest("data.partitions", table.keys()), "sync.partitions");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  const OptionTable table;
  EXPECT_EQ(Nearest("zzzzzzzzzzzz", table.keys()), "");
  EXPECT_EQ(DidYouMean("zzzzzzzzzzzz", table.keys()), "");
  EXPECT_EQ(Nearest("", table.keys()), "");
  EXPECT_EQ(Nearest(std::string(100000, 'a'), table.keys()), "");
}

}  // namespace
}  // namespace kumo
