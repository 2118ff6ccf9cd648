#include "common/http/thinned.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

// The additions from one on, as many as were merged.
struct Stretch {
  int first = 0;
  int count = 1;

  void Merge(const Stretch& later) {
    EXPECT_EQ(later.first, first + count) << "neighbours, the earlier one first";
    count += later.count;
  }
};

TEST(Thinned, SpansAllThatWasAddedInStretchesOfOneLengthHoweverMuchItIs) {
  constexpr size_t kMost = 6;
  Thinned<Stretch> series(kMost);
  for (int i = 0; i < 1000; ++i) {
    series.Add({i});
    const std::vector<Stretch> points = series.points();
    ASSERT_LE(points.size(), kMost) << "after " << i + 1;
    ASSERT_GE(points.size(), std::min<size_t>(static_cast<size_t>(i) + 1, kMost / 2));
    int next = 0;
    for (size_t k = 0; k < points.size(); ++k) {
      ASSERT_EQ(points[k].first, next);
      if (k + 1 < points.size()) {
        ASSERT_EQ(points[k].count, static_cast<int>(series.each()));
      }
      next += points[k].count;
    }
    ASSERT_EQ(next, i + 1) << "nothing is lost";
  }
}

TEST(Thinned, IsEmptyBeforeAnythingIsAdded) {
  EXPECT_TRUE(Thinned<Stretch>(2).points().empty());
  EXPECT_EQ(Thinned<Stretch>(2).each(), 1u);
}

}  // namespace
}  // namespace kumo
