#include "common/base/did_you_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;

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

TEST(EditDistance, IsExactUpToWhatMattersAndMoreBeyond) {
  Rng rng(2, RngPurpose::kTest);
  for (int i = 0; i < 2000; ++i) {
    const std::string a = RandomWord(&rng), b = RandomWord(&rng);
    const int distance = EditDistance(a, b);
    for (int most = -1; most < 9; ++most) {
      const int told = EditDistance(a, b, most);
      EXPECT_EQ(std::min(told, most + 1), std::min(distance, most + 1)) << a << " " << b;
    }
  }
}

TEST(Nearest, FindsEveryKeyWithOneLetterMissing) {
  const OptionTable& table = OptionTable::Shared();
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

TEST(Nearest, CaseDoesNotCount) {
  EXPECT_EQ(Nearest("SGD", std::vector<std::string>{"adam", "sgd"}), "sgd");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  const OptionTable& table = OptionTable::Shared();
  EXPECT_EQ(Nearest("zzzzzzzzzzzz", table.keys()), "");
  EXPECT_EQ(DidYouMean("zzzzzzzzzzzz", table.keys()), "");
  EXPECT_EQ(Nearest("", table.keys()), "");
  EXPECT_EQ(Nearest(std::string(100000, 'a'), table.keys()), "");
}

constexpr KnownName kNames[] = {
    {"fully_connected", "dense linear fc"}, {"convolution", "conv2d conv"}, {"dropout", ""}};

TEST(Meant, FindsAWordByWhatItIsAlsoCalledWhateverItsCaseAndUnderscores) {
  EXPECT_THAT(Meant("FullyConnected", kNames), ElementsAre(0u));
  EXPECT_THAT(Meant("Linear", kNames), ElementsAre(0u));
  EXPECT_THAT(Meant("CONV_2D", kNames), ElementsAre(1u));
  EXPECT_THAT(Meant("drop-out", kNames), ElementsAre(2u));
}

TEST(Meant, FindsAWordByItsSpellingToo) {
  EXPECT_THAT(Meant("convoluton", kNames), ElementsAre(1u));
  EXPECT_THAT(Meant("linaer", kNames), ElementsAre(0u));
  EXPECT_THAT(Meant("fd", kNames), ElementsAre()) << "short words are near to too much";
  EXPECT_THAT(Meant("transformer", kNames), ElementsAre());
  EXPECT_THAT(Meant("__", kNames), ElementsAre());
}

TEST(Meant, FindsAllThatAreEquallyNearAndNoneThatIsFarther) {
  constexpr KnownName kTwo[] = {{"a.momentum", "momentum"}, {"b", "momentun"}, {"c", "momentum"}};
  EXPECT_THAT(Meant("momentum", kTwo), ElementsAre(0u, 2u));
}

TEST(DidYouMean, NamesAllInASentence) {
  const std::vector<std::string> names = {"a", "b", "c"};
  EXPECT_EQ(DidYouMean(std::span(names).first(1)), "; did you mean a?");
  EXPECT_EQ(DidYouMean(std::span(names).first(2)), "; did you mean a or b?");
  EXPECT_EQ(DidYouMean(names), "; did you mean a, b or c?");
  EXPECT_EQ(DidYouMean(std::span<const std::string>()), "");
}

}  // namespace
}  // namespace kumo
