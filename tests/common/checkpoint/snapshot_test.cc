#include "common/checkpoint/snapshot.h"

#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(Snapshot, WhereAnArrayAndARangeOverlapItsNumbersAreCopied) {
  const std::vector<float> numbers = {10, 11, 12, 13};
  StateArray array;
  array.begin = 10;
  array.numbers = numbers;
  for (int64_t begin = 5; begin < 20; ++begin) {
    for (int64_t end = begin + 1; end < 20; ++end) {
      std::vector<float> out(end - begin, -1);
      int64_t expected = 0;
      const int64_t copied = CopyOverlap(array, {begin, end}, out);
      for (int64_t i = begin; i < end; ++i) {
        const bool inside = i >= 10 && i < 14;
        expected += inside;
        ASSERT_EQ(out[i - begin], inside ? static_cast<float>(i) : -1);
      }
      ASSERT_EQ(copied, expected);
      ASSERT_EQ(Overlaps(array, {begin, end}), expected > 0);
    }
  }
}

}  // namespace
}  // namespace kumo
