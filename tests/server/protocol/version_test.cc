#include "server/protocol/version.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr size_t kNumbers = 5;

FloatArray Filled(float value) {
  const FloatArray array = MakeArray(kNumbers);
  std::fill_n(array->data(), kNumbers, value);
  return array;
}

Version Made(bool apart, int slots, bool copy = false) {
  Version version;
  version.start = version.weights = Filled(1);
  if (apart) version.weights = Filled(2);
  for (int i = 0; i < slots; ++i) version.slots.push_back(Filled(10.0f + static_cast<float>(i)));
  if (copy) version.worker_copy = Filled(3);
  return version;
}

TEST(Version, TakenApartAndPutTogetherItIsTheSameArrays) {
  for (const bool apart : {false, true}) {
    for (int slots = 0; slots <= Optimiser::kMaxSlots; ++slots) {
      const bool copy = slots != 1;
      const Version version = Made(apart, slots, copy);
      std::map<int, FloatArray> arrays;
      for (const VersionArray& array : ArraysOf(version)) {
        EXPECT_LT(array.number, Version::kMostArrays);
        EXPECT_TRUE(arrays.emplace(array.number, array.elements).second);
      }
      EXPECT_EQ(arrays.size(), 1u + apart + slots + copy);
      const Version again = VersionOf(arrays);
      EXPECT_EQ(again.start, version.start);
      EXPECT_EQ(again.weights, version.weights);
      EXPECT_EQ(again.slots, version.slots);
      EXPECT_EQ(again.worker_copy, version.worker_copy);
      EXPECT_EQ(again.copy(), copy ? version.worker_copy : version.start);
    }
  }
}

TEST(Version, ItsArraysHaveTheNumbersThatAreOnTheWireAndOnDisks) {
  const std::vector<VersionArray> arrays = ArraysOf(Made(true, 2, true));
  ASSERT_EQ(arrays.size(), 5u);
  const int numbers[] = {0, 1, 2, 3, 4};
  const StateKind kinds[] = {StateKind::kStart, StateKind::kWeights, StateKind::kRuleSlot,
                             StateKind::kRuleSlot, StateKind::kWorkerCopy};
  const int slots[] = {0, 0, 0, 1, 0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(arrays[i].number, numbers[i]);
    EXPECT_EQ(arrays[i].kind, kinds[i]);
    EXPECT_EQ(arrays[i].slot, slots[i]);
    EXPECT_EQ(ArrayNumber(kinds[i], slots[i]), numbers[i]);
  }
}

TEST(Version, WhatAFileMayNameBesidesIsNoArrayOfIt) {
  for (const int slot : {-1, Optimiser::kMaxSlots, INT32_MAX, INT32_MIN}) {
    EXPECT_FALSE(ArrayNumber(StateKind::kRuleSlot, slot)) << slot;
  }
  EXPECT_FALSE(ArrayNumber(StateKind::kPartitionState, 0));
  EXPECT_FALSE(ArrayNumber(static_cast<StateKind>(77), 0));
}

TEST(Version, ASlotThatIsMissingBetweenOthersIsZeros) {
  const FloatArray last = Filled(7);
  const Version version =
      VersionOf({{Version::kStart, Filled(1)}, {Version::kFirstSlot + 1, last}});
  ASSERT_EQ(version.slots.size(), 2u);
  EXPECT_EQ(version.slots[1], last);
  ASSERT_EQ(version.slots[0]->size(), kNumbers);
  EXPECT_EQ((*version.slots[0])[0], 0);
}

TEST(Version, FrozenItHasSlotsOfItsOwn) {
  const Version version = Made(true, 2);
  const Version frozen = Frozen(version);
  EXPECT_EQ(frozen.start, version.start);
  EXPECT_EQ(frozen.weights, version.weights);
  ASSERT_EQ(frozen.slots.size(), 2u);
  (*version.slots[1])[3] = 99;
  EXPECT_NE(frozen.slots[1], version.slots[1]);
  EXPECT_EQ((*frozen.slots[1])[3], 11);
}

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
