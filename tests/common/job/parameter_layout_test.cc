#include "common/job/parameter_layout.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using testing::HasSubstr;

std::vector<TensorSpec> SomeTensors() {
  return {{"conv.weight", {5, 3, 3, 3}, Segment::kDecayed},
          {"conv.bias", {5}, Segment::kUndecayed},
          {"norm.mean", {5}, Segment::kStatistics},
          {"fc.weight", {10, 45}, Segment::kDecayed},
          {"fc.bias", {10}, Segment::kUndecayed}};
}

ParameterLayout Layout(std::vector<TensorSpec> tensors) {
  Result<ParameterLayout> layout = ParameterLayout::Make(std::move(tensors));
  CHECK(layout.ok()) << layout.status().message();
  return *layout;
}

std::string Refusal(std::vector<TensorSpec> tensors) {
  const Result<ParameterLayout> layout = ParameterLayout::Make(std::move(tensors));
  EXPECT_EQ(layout.status().code(), StatusCode::kInvalidArgument);
  return layout.status().message();
}

TEST(ParameterLayout, TensorsKeepTheirOrderInsideTheirSegmentsAndDoNotOverlap) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 100; ++i) {
    std::vector<TensorSpec> tensors;
    for (uint64_t t = 0, count = 1 + rng.NextBelow(12); t < count; ++t) {
      tensors.push_back({"t" + std::to_string(t),
                         {1 + static_cast<int64_t>(rng.NextBelow(40)),
                          1 + static_cast<int64_t>(rng.NextBelow(3))},
                         static_cast<Segment>(rng.NextBelow(kSegments))});
    }
    const ParameterLayout layout = Layout(tensors);
    int64_t previous_end = 0;
    for (int s = 0; s < kSegments; ++s) {
      const Range segment = layout.segment(static_cast<Segment>(s));
      ASSERT_EQ(segment.begin % 16, 0);
      ASSERT_GE(segment.begin, previous_end);
      ASSERT_LT(segment.begin - previous_end, 16);
      int64_t position = segment.begin;
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (static_cast<int>(tensors[t].segment) != s) continue;
        const Range range = layout.tensor(static_cast<int>(t));
        ASSERT_EQ(range.begin, position);
        ASSERT_EQ(range.size(), tensors[t].size());
        position = range.end;
      }
      ASSERT_EQ(position, segment.end);
      previous_end = segment.end;
    }
    ASSERT_EQ(layout.size() % 16, 0);
    ASSERT_GE(layout.size(), previous_end);
  }
}

TEST(ParameterLayout, EachPositionBelongsToItsTensorAndGapsToNobody) {
  const ParameterLayout layout = Layout(SomeTensors());
  std::vector<int> owner(layout.size(), -1);
  for (size_t t = 0; t < layout.tensors().size(); ++t) {
    const Range range = layout.tensor(static_cast<int>(t));
    for (int64_t i = range.begin; i < range.end; ++i) owner[i] = static_cast<int>(t);
  }
  for (int64_t i = 0; i < layout.size(); ++i) ASSERT_EQ(layout.TensorAt(i), owner[i]) << i;
  EXPECT_EQ(layout.TensorAt(-1), -1);
  EXPECT_EQ(layout.TensorAt(layout.size()), -1);
}

TEST(ParameterLayout, AScalarHasOneNumber) {
  EXPECT_EQ(Layout({{"scale", {}, Segment::kUndecayed}}).tensor(0).size(), 1);
}

TEST(ParameterLayout, WhatNoNetworkHasIsRefused) {
  EXPECT_THAT(Refusal({}), HasSubstr("without a parameter"));
  EXPECT_THAT(Refusal({{"", {3}, Segment::kDecayed}}), HasSubstr("no name"));
  EXPECT_THAT(Refusal({{"a", {3}, Segment::kDecayed}, {"a", {4}, Segment::kUndecayed}}),
              HasSubstr("called a"));
  for (const int segment : {-1, 3, 1000}) {
    EXPECT_THAT(Refusal({{"a", {3}, static_cast<Segment>(segment)}}), HasSubstr("segment"));
  }
}

TEST(ParameterLayout, ShapesThatOverflowAreRefusedNotMultiplied) {
  constexpr int64_t kLarge = int64_t{1} << 33;
  const std::vector<std::vector<int64_t>> shapes = {
      {0},
      {-1},
      {3, 0},
      {-2, -3},
      {INT64_MAX},
      {INT64_MIN},
      {kLarge, kLarge},
      {int64_t{1} << 32, int64_t{1} << 32},  // 2^64, which wraps to 0
      {(int64_t{1} << 36) + 1},
      std::vector<int64_t>(100, 2)};
  for (const auto& shape : shapes) {
    EXPECT_THAT(Refusal({{"huge", shape, Segment::kDecayed}}), HasSubstr("huge"));
  }
  // One by one possible, together not.
  EXPECT_THAT(Refusal({{"a", {int64_t{1} << 35}, Segment::kDecayed},
                       {"b", {int64_t{1} << 35}, Segment::kDecayed},
                       {"c", {1}, Segment::kDecayed}}),
              HasSubstr("more than"));
}

TEST(ParameterLayout, TensorsOfOneSegmentAndFactorsLieTogetherFrozenOnesLast) {
  std::vector<TensorSpec> tensors = {{"a", {5}, Segment::kDecayed, {.rate = 0}},
                                     {"b", {7}, Segment::kDecayed},
                                     {"c", {3}, Segment::kDecayed, {.rate = 2, .decay = 0}},
                                     {"d", {4}, Segment::kUndecayed},
                                     {"e", {6}, Segment::kDecayed},
                                     {"f", {2}, Segment::kDecayed, {.rate = 0}},
                                     {"g", {9}, Segment::kStatistics, {.rate = 0}}};
  const ParameterLayout layout = Layout(tensors);
  const std::vector<Range> expected = {{32, 37}, {0, 7},   {16, 19}, {48, 52},
                                       {7, 13},  {37, 39}, {64, 73}};
  for (size_t t = 0; t < tensors.size(); ++t) {
    EXPECT_EQ(layout.tensor(static_cast<int>(t)), expected[t]) << tensors[t].name;
  }
  std::vector<Range> groups;
  std::vector<bool> trained;
  for (const StepGroup& group : layout.groups()) {
    groups.push_back(group.range);
    trained.push_back(group.trained());
  }
  EXPECT_EQ(groups, (std::vector<Range>{{0, 13}, {16, 19}, {32, 39}, {48, 52}, {64, 73}}));
  EXPECT_EQ(trained, (std::vector<bool>{true, true, false, true, false}));
  EXPECT_EQ(layout.groups()[1].factors, (StepFactors{.rate = 2, .decay = 0}));
  EXPECT_EQ(layout.segment(Segment::kDecayed), (Range{0, 39}));
  EXPECT_EQ(layout.size(), 80);

  for (TensorSpec& tensor : tensors) tensor.factors = {};
  EXPECT_EQ(Layout(tensors).groups().size(), 3u) << "one for each segment";
}

TEST(ParameterLayout, FactorsThatAreNoneAreRefused) {
  for (const float bad : {-1.0f, -0.0f, std::nanf(""), HUGE_VALF}) {
    EXPECT_THAT(Refusal({{"a", {3}, Segment::kDecayed, {.rate = bad}}}), HasSubstr("tensor a"));
    EXPECT_THAT(Refusal({{"a", {3}, Segment::kDecayed, {.decay = bad}}}), HasSubstr("tensor a"));
  }
}

TEST(ParameterLayout, FingerprintsTellApartWhateverFirstDifferenceNames) {
  std::vector<std::vector<TensorSpec>> networks = {SomeTensors()};
  const auto variant = [&](auto change) {
    networks.push_back(SomeTensors());
    change(networks.back());
  };
  variant([](auto& t) { t[1].name = "conv.scale"; });
  variant([](auto& t) { t[3].shape = {45, 10}; });
  variant([](auto& t) { t[3].shape = {450}; });
  variant([](auto& t) { t[2].segment = Segment::kUndecayed; });
  variant([](auto& t) { std::swap(t[0], t[3]); });
  variant([](auto& t) { t[0].factors.rate = 0; });
  variant([](auto& t) { t[0].factors.rate = 0.5f; });
  variant([](auto& t) { t[0].factors.decay = 0.5f; });
  variant([](auto& t) { t[3].factors.rate = 0.5f; });
  variant([](auto& t) { t.pop_back(); });
  variant([](auto& t) { t.push_back({"more", {1}, Segment::kDecayed}); });
  // The same characters and numbers, cut at other places.
  variant([](auto& t) {
    t[0].name = "conv.weigh";
    t[1].name = "tconv.bias";
  });
  std::set<uint64_t> fingerprints;
  for (size_t a = 0; a < networks.size(); ++a) {
    const ParameterLayout one = Layout(networks[a]);
    EXPECT_TRUE(fingerprints.insert(one.fingerprint()).second) << a;
    for (size_t b = 0; b < networks.size(); ++b) {
      const ParameterLayout other = Layout(networks[b]);
      EXPECT_EQ(one.FirstDifference(other).empty(), a == b) << a << " and " << b;
      EXPECT_EQ(one.fingerprint() == other.fingerprint(), a == b);
    }
  }
}

TEST(ParameterLayout, TheFirstDifferenceNamesBothSides) {
  std::vector<TensorSpec> other = SomeTensors();
  other[3].shape = {11, 45};
  other[4].shape = {11};
  const std::string difference = Layout(SomeTensors()).FirstDifference(Layout(other));
  EXPECT_THAT(difference, HasSubstr("fc.weight [10, 45]"));
  EXPECT_THAT(difference, HasSubstr("fc.weight [11, 45]"));
  EXPECT_THAT(difference, testing::Not(HasSubstr("fc.bias")));
  other = SomeTensors();
  other.pop_back();
  EXPECT_THAT(Layout(SomeTensors()).FirstDifference(Layout(other)), HasSubstr("fc.bias"));
  EXPECT_THAT(Layout(other).FirstDifference(Layout(SomeTensors())), HasSubstr("fc.bias"));
}

}  // namespace
}  // namespace kumo
