#include "common/checkpoint/relocation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/manifest.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<TensorSpec> Tensors() {
  return {{"a", {20}}, {"b", {5}}, {"c", {7}}, {"bias", {3}, Segment::kUndecayed}};
}

checkpoint::Manifest ManifestOf(const ParameterLayout& layout) {
  checkpoint::Manifest manifest;
  manifest.set_name("round-000000000003");
  manifest.set_fingerprint(layout.fingerprint());
  SetTensors(layout, &manifest);
  return manifest;
}

class RelocationTest : public testing::Test {
 protected:
  RelocationTest() {
    auto tensors = Tensors();
    tensors[0].factors.rate = 0;
    tensors[1].factors.rate = 0.5f;
    now_ = ParameterLayout::Make(tensors).value();
    numbers_.resize(then_.size());
    std::iota(numbers_.begin(), numbers_.end(), 0.0f);
  }

  // An array of all positions, in two parts, each number 1000 times the kind above its position.
  void Add(StateKind kind, ShardSnapshot* snapshot) {
    auto numbers = std::make_shared<std::vector<float>>(numbers_);
    for (float& number : *numbers) number += 1000 * static_cast<float>(kind);
    const int64_t middle = 18;
    const std::span<const float> all(*numbers);
    snapshot->arrays.push_back({kind, 0, 0, 0, numbers, all.first(middle)});
    snapshot->arrays.push_back({kind, 0, 0, middle, numbers, all.subspan(middle)});
  }

  const ParameterLayout then_ = ParameterLayout::Make(Tensors()).value();
  ParameterLayout now_;
  std::vector<float> numbers_;
};

TEST_F(RelocationTest, EachTensorMovesToItsPlaceAndFrozenOnesKeepTheEvaluatedWeightsAlone) {
  ASSERT_NE(now_.tensor(0), then_.tensor(0));
  const Relocation relocation = Relocation::Make(ManifestOf(then_), now_).value();
  const Range all = {0, now_.size()};
  for (const bool apart : {false, true}) {
    ShardSnapshot snapshot;
    Add(StateKind::kStart, &snapshot);
    if (apart) Add(StateKind::kWeights, &snapshot);
    Add(StateKind::kRuleSlot, &snapshot);
    relocation.Move(all, &snapshot);
    for (int i = 0; i < 4; ++i) {
      const Range range = now_.tensor(i);
      for (const StateKind kind : {StateKind::kStart, StateKind::kWeights, StateKind::kRuleSlot}) {
        std::vector<float> found(range.size());
        int64_t copied = 0;
        for (const StateArray& array : snapshot.arrays) {
          if (array.kind == kind) copied += CopyOverlap(array, range, found);
        }
        const bool frozen = i == 0;
        const bool kept =
            kind == StateKind::kStart || (!frozen && (apart || kind != StateKind::kWeights));
        ASSERT_EQ(copied, kept ? range.size() : 0) << i << ", kind " << static_cast<int>(kind);
        const auto from = static_cast<float>(frozen && apart ? StateKind::kWeights : kind);
        for (int64_t k = 0; kept && k < range.size(); ++k) {
          ASSERT_EQ(found[k], 1000 * from + static_cast<float>(then_.tensor(i).begin + k));
        }
      }
    }
  }
}

// It has lost nothing: a state with a part that is missing would be lost as a whole.
TEST_F(RelocationTest, ATensorThatWasFrozenGetsZerosForWhatPartitionsCarry) {
  const Relocation relocation = Relocation::Make(ManifestOf(now_), then_).value();
  const Range trained = {now_.tensor(1).begin, now_.tensor(1).end};
  auto numbers = std::make_shared<std::vector<float>>(trained.size(), 7.0f);
  ShardSnapshot snapshot;
  Add(StateKind::kStart, &snapshot);
  snapshot.arrays.push_back(
      {StateKind::kPartitionState, 2, 1, trained.begin, numbers, std::span<const float>(*numbers)});
  const Range wanted = {then_.tensor(0).begin + 3, then_.size()};
  relocation.Move(wanted, &snapshot);
  int64_t zeros = 0;
  for (const StateArray& array : snapshot.arrays) {
    if (array.kind != StateKind::kPartitionState) continue;
    EXPECT_EQ(std::pair(array.partition, array.slot), std::pair(2, 1));
    const bool kept = array.begin == then_.tensor(1).begin;
    EXPECT_THAT(array.numbers, testing::Each(kept ? 7.0f : 0.0f));
    if (kept) continue;
    EXPECT_EQ(array.begin, wanted.begin);
    zeros += std::ssize(array.numbers);
  }
  EXPECT_EQ(zeros, then_.tensor(0).size() - 3);
}

// Else the state that a partition keeps would depend on how many servers there are.
TEST_F(RelocationTest, AServerWithFrozenTensorsAloneReadsWhatPartitionsCarry) {
  const Relocation relocation = Relocation::Make(ManifestOf(now_), then_).value();
  const Range wanted = {then_.tensor(0).begin + 3, then_.tensor(0).begin + 9};
  const Range stored = relocation.Stored(wanted);
  int64_t trained = 0;  // numbers that were trained
  for (int i = 1; i < 4; ++i) {
    const Range tensor = now_.tensor(i);
    trained += std::max<int64_t>(
        0, std::min(stored.end, tensor.end) - std::max(stored.begin, tensor.begin));
  }
  EXPECT_EQ(trained, 1);

  ShardSnapshot snapshot;
  Add(StateKind::kStart, &snapshot);
  auto numbers = std::make_shared<std::vector<float>>(1, 7.0f);
  const int64_t at = stored.begin < now_.tensor(0).begin ? stored.begin : stored.end - 1;
  snapshot.arrays.push_back(
      {StateKind::kPartitionState, 2, 1, at, numbers, std::span<const float>(*numbers)});
  relocation.Move(wanted, &snapshot);
  int64_t zeros = 0;
  for (const StateArray& array : snapshot.arrays) {
    if (array.kind != StateKind::kPartitionState) continue;
    EXPECT_EQ(std::pair(array.partition, array.slot), std::pair(2, 1));
    EXPECT_THAT(array.numbers, testing::Each(0.0f));
    EXPECT_EQ(array.begin, wanted.begin);
    zeros += std::ssize(array.numbers);
  }
  EXPECT_EQ(zeros, wanted.size());
}

TEST_F(RelocationTest, APartOfTheLayoutComesFromThePositionsThatHoldIt) {
  const Relocation relocation = Relocation::Make(ManifestOf(then_), now_).value();
  for (int64_t begin = 0; begin < now_.size(); ++begin) {
    for (int64_t end = begin + 1; end <= now_.size(); ++end) {
      const Range stored = relocation.Stored({begin, end});
      ShardSnapshot snapshot;
      Add(StateKind::kStart, &snapshot);
      for (StateArray& array : snapshot.arrays) {  // cut to `stored`, as a reader does
        const int64_t from =
            std::clamp<int64_t>(stored.begin - array.begin, 0, array.numbers.size());
        const int64_t to =
            std::clamp<int64_t>(stored.end - array.begin, from, array.numbers.size());
        array.numbers = array.numbers.subspan(from, to - from);
        array.begin += from;
      }
      relocation.Move({begin, end}, &snapshot);
      int64_t found = 0, wanted = 0;
      for (const StateArray& array : snapshot.arrays) {
        ASSERT_GE(array.begin, begin);
        found += std::ssize(array.numbers);
        ASSERT_LE(array.begin + std::ssize(array.numbers), end);
      }
      for (int64_t i = begin; i < end; ++i) wanted += now_.TensorAt(i) >= 0 ? 1 : 0;
      ASSERT_EQ(found, wanted) << begin << " .. " << end;
    }
  }
}

TEST_F(RelocationTest, EqualLayoutsMoveNothingAndOtherTensorsAreRefused) {
  const Relocation same = Relocation::Make(ManifestOf(now_), now_).value();
  EXPECT_EQ(same.Stored({3, 9}), (Range{3, 9}));
  auto tensors = Tensors();
  tensors[2].shape = {8};
  const auto other = Relocation::Make(ManifestOf(then_), ParameterLayout::Make(tensors).value());
  EXPECT_EQ(other.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.status().message(), AllOf(HasSubstr("another network"), HasSubstr("c [7]")));
  checkpoint::Manifest unnamed = ManifestOf(then_);  // of release 0.1
  unnamed.clear_tensors();
  EXPECT_FALSE(Relocation::Make(unnamed, now_).ok());
}

}  // namespace
}  // namespace kumo
