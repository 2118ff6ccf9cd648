#include "server/rules/difference.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

std::vector<float> Drawn(size_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> numbers(n);
  for (float& x : numbers) x = rng.NextNormal();
  return numbers;
}

TEST(Difference, HasTheBytesOfTheWholeChunk) {
  for (const Codec* codec : AllCodecs()) {
    for (const size_t n : {size_t{0}, size_t{1}, size_t{512}, size_t{1024}, size_t{5003}}) {
      const std::vector<float> next = Drawn(n, 1), before = Drawn(n, 2);
      std::vector<float> difference(n);
      for (size_t i = 0; i < n; ++i) difference[i] = next[i] - before[i];
      std::vector<std::byte> expected(codec->EncodedBytes(n)), coded = expected;
      ASSERT_EQ(codec->Encode(difference, {}, expected), -1);
      std::vector<float> expected_copy = before, copy(n);
      codec->DecodeAdd(expected, n, 0, 1.0f, expected_copy);
      for (const bool stream : {false, true}) {
        ASSERT_EQ(EncodeDifference(*codec, {}, next, before, copy, coded, stream), -1);
        EXPECT_EQ(coded, expected) << codec->name() << ", " << n;
        EXPECT_EQ(copy, expected_copy) << codec->name() << ", " << n;
      }
    }
  }
}

TEST(Difference, ReportsTheFirstNumberThatTheCodecCannotHold) {
  for (const Codec* codec : AllCodecs()) {
    const size_t n = 4000;
    std::vector<float> next = Drawn(n, 1), copy(n);
    const std::vector<float> before = Drawn(n, 2);
    std::vector<std::byte> coded(codec->EncodedBytes(n));
    for (const size_t at : {size_t{3999}, size_t{2500}, size_t{1024}, size_t{7}}) {
      next[at] = std::numeric_limits<float>::infinity();
      EXPECT_EQ(EncodeDifference(*codec, {}, next, before, copy, coded, at % 2 == 0),
                static_cast<int64_t>(at));
    }
  }
}

}  // namespace
}  // namespace kumo
