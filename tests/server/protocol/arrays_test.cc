#include "server/protocol/arrays.h"

#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

std::vector<std::byte> Bytes(const std::vector<float>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(Arrays, ANewOneIsZero) {
  const FloatArray array = MakeArray(1000);
  ASSERT_EQ(array->size(), 1000u);
  for (const float number : array->span()) EXPECT_EQ(number, 0.0f);
}

TEST(Arrays, WhatIsCopiedAndSentIsTheSame) {
  const std::vector<float> numbers = {1, -2.5f, 0, 1e-40f};
  const FloatArray copy = CopyFloats(Bytes(numbers));
  EXPECT_EQ(std::vector<float>(copy->span().begin(), copy->span().end()), numbers);
  Payload payload = BytesOf(copy);
  EXPECT_EQ(std::vector<std::byte>(payload.bytes.begin(), payload.bytes.end()), Bytes(numbers));
  // A message on its way keeps the numbers alive.
  EXPECT_EQ(copy.use_count(), 2);
  payload = {};
  EXPECT_EQ(copy.use_count(), 1);
}

TEST(Arrays, APeersBytesAreFiniteNumbersOfTheRightCount) {
  EXPECT_TRUE(CheckFloats({}, 0).ok());
  EXPECT_TRUE(CheckFloats(Bytes({1, 2, 3}), 3).ok());
  EXPECT_EQ(CheckFloats(Bytes({1, 2, 3}), 2).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckFloats(Bytes({1, 2, 3}), 4).code(), StatusCode::kInvalidArgument);
  std::vector<std::byte> torn = Bytes({1, 2});
  torn.pop_back();
  EXPECT_EQ(CheckFloats(torn, 2).code(), StatusCode::kInvalidArgument);
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float wrong : {infinite, -infinite, std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at = 0; at < 67; ++at) {
      std::vector<float> numbers(67, 1.0f);
      numbers[at] = wrong;
      EXPECT_EQ(CheckFloats(Bytes(numbers), 67).code(), StatusCode::kInvalidArgument) << at;
    }
  }
}

}  // namespace
}  // namespace kumo
