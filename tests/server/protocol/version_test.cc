#include "server/protocol/version.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/rules/rule.h"

namespace kumo {
namespace {

constexpr size_t kNumbers = 5;

FloatArray Filled(float value) {
  const FloatArray array = MakeArray(kNumbers);
  std::fill_n(array->data(), kNumbers, value);
  return array;
}

Version Made(bool apart, int slots) {
  Version version;
  version.start = version.weights = Filled(1);
  if (apart) version.weights = Filled(2);
  for (int i = 0; i < slots; ++i) version.slots.push_back(Filled(10.0f + static_cast<float>(i)));
  return version;
}

// A rule of which only what it keeps matters.
class Keeps final : public Rule {
 public:
  Keeps(bool apart, int slots) : apart_(apart), slots_(slots) {}
  std::string_view name() const override { return "keeps"; }
  int slots() const override { return slots_; }
  bool keeps_weights_apart() const override { return apart_; }

 private:
  void Step(const RoundInfo&, const RuleArrays&) const override {}
  const bool apart_;
  const int slots_;
};

// --- The list.

TEST(Version, TakenApartAndPutTogetherItIsTheSameArrays) {
  for (const bool apart : {false, true}) {
    for (int slots = 0; slots <= Optimiser::kMaxSlots; ++slots) {
      const Version version = Made(apart, slots);
      std::map<int, FloatArray> arrays;
      for (const VersionArray& array : ArraysOf(version)) {
        EXPECT_LT(array.number, Version::kMostArrays);
        EXPECT_TRUE(arrays.emplace(array.number, array.numbers).second);
      }
      EXPECT_EQ(arrays.size(), 1u + apart + slots);
      const Version again = VersionOf(arrays);
      EXPECT_EQ(again.start, version.start);
      EXPECT_EQ(again.weights, version.weights);
      EXPECT_EQ(again.slots, version.slots);
    }
  }
}

TEST(Version, ItsArraysHaveTheNumbersThatAreOnTheWireAndOnDisks) {
  const std::vector<VersionArray> arrays = ArraysOf(Made(true, 2));
  ASSERT_EQ(arrays.size(), 4u);
  const int numbers[] = {0, 1, 2, 3};
  const StateKind kinds[] = {StateKind::kStart, StateKind::kWeights, StateKind::kRuleSlot,
                             StateKind::kRuleSlot};
  const int slots[] = {0, 0, 0, 1};
  for (int i = 0; i < 4; ++i) {
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
      VersionOf({{Version::kStart, Filled(1)}, {Version::kFirstSlot + 2, last}});
  ASSERT_EQ(version.slots.size(), 3u);
  EXPECT_EQ(version.slots[2], last);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(version.slots[i]->size(), kNumbers);
    EXPECT_EQ((*version.slots[i])[0], 0);
  }
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

// --- What comes next.

TEST(Version, TheNextOneGetsTheArraysThatNobodyReadsAnyMore) {
  for (const bool apart : {false, true}) {
    Version current = Made(apart, 1), previous = Made(apart, 0);
    const auto old = {previous.start.get(), previous.weights.get()};
    const std::vector<FloatArray> slots = current.slots;
    const Version next = NextArrays(Keeps(apart, 1), 5, &current, &previous);
    EXPECT_TRUE(std::ranges::equal(old, std::vector{next.start.get(), next.weights.get()}));
    EXPECT_EQ(next.slots, slots);
    EXPECT_TRUE(current.exists());
    EXPECT_TRUE(current.slots.empty());
    EXPECT_FALSE(previous.exists());
  }
}

TEST(Version, WhatIsStillReadIsNotWrittenTo) {
  for (const bool apart : {false, true}) {
    for (const bool reads_start : {false, true}) {
      Version current = Made(apart, 0), previous = Made(apart, 0);
      const FloatArray read = reads_start ? previous.start : previous.weights;
      const Version next = NextArrays(Keeps(apart, 0), 5, &current, &previous);
      for (const FloatArray& array : {next.start, next.weights}) {
        EXPECT_NE(array, read);
        EXPECT_NE(array, current.start);
        EXPECT_NE(array, current.weights);
        EXPECT_EQ(array->size(), kNumbers);
      }
      EXPECT_EQ(next.start == next.weights, !apart);
    }
  }
}

// A warm-up's rule need not keep what the rule of blocks does.
TEST(Version, TheArraysOfAVersionMayBecomeMoreOrFewer) {
  for (const bool before : {false, true}) {
    for (const bool after : {false, true}) {
      Version current = Made(before, 0), previous = Made(before, 0);
      const Version next = NextArrays(Keeps(after, 0), 5, &current, &previous);
      EXPECT_EQ(next.start == next.weights, !after);
    }
  }
}

TEST(Version, ARulesSlotsBeginAsZerosWithItsFirstRound) {
  Version current = Made(false, 2), previous;
  const Version first = NextArrays(Keeps(false, 1), 1, &current, &previous);
  ASSERT_EQ(first.slots.size(), 1u);
  EXPECT_EQ((*first.slots[0])[0], 0);

  Version restored = Made(false, 1);  // by a version of the program that kept fewer
  const Version later = NextArrays(Keeps(false, 3), 2, &restored, &previous);
  ASSERT_EQ(later.slots.size(), 3u);
  EXPECT_EQ((*later.slots[0])[0], 10);
  EXPECT_EQ((*later.slots[2])[0], 0);
}

}  // namespace
}  // namespace kumo
