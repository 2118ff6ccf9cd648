#include "server/shard/directives.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

const JobPlan kDirectedPlan = test::DelayedJob(0).plan();

MetricSums Sums(int64_t samples, double loss) {
  return test::SumsOf(samples, loss, static_cast<double>(samples / 2));
}

TEST(Directives, AVersionIsSeenWithTheSumsOfItsRoundAlone) {
  std::vector<std::pair<int64_t, MetricSums>> seen;
  Directives directives(
      [&](int64_t version, const MetricSums& metrics, StepContext* context) {
        seen.emplace_back(version, metrics);
        context->Do(RoundClosedAction{});
        return Directive{.save = version == 4};
      },
      &kDirectedPlan);
  StepContext context;
  // In floating point, in another order, the sum would be 0.
  directives.Note(3, 2, Sums(8, 1));
  directives.Note(3, 0, Sums(2, 1e17));
  directives.Note(3, 1, Sums(4, -1e17));
  directives.Observe(4, &context);
  directives.Observe(5, &context);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].first, 4);
  EXPECT_EQ(seen[0].second.samples, 14);
  EXPECT_EQ(test::Correct(seen[0].second), 7);
  EXPECT_EQ(test::LossSum(seen[0].second), 1);
  EXPECT_EQ(seen[1].second.samples, 0);
  EXPECT_EQ(context.actions.size(), 2u);
  EXPECT_TRUE(directives.At(0, 4).save);
  EXPECT_FALSE(directives.At(0, 5).save);
  EXPECT_FALSE(directives.At(1, 4).save) << "travels with chunk 0";
  EXPECT_EQ(directives.newest().first, 5);
}

TEST(Directives, NoMoreOfThemAreKeptThanVersionsAre) {
  Directives directives(
      [](int64_t, const MetricSums&, StepContext*) { return Directive{.save = true}; },
      &kDirectedPlan);
  StepContext context;
  for (int64_t version = 0; version < 100; ++version) {
    directives.Observe(version, &context);
    for (int64_t kept = version; kept >= 0 && kept >= version - 2; --kept) {
      EXPECT_TRUE(directives.At(0, kept).save);
    }
    EXPECT_FALSE(directives.At(0, version - 3).save);
    EXPECT_FALSE(directives.At(0, version + 1).save);
  }
}

TEST(Directives, WhatWasSaidComesBackFromAnotherServer) {
  Directives directives([](int64_t, const MetricSums&, StepContext*) { return Directive(); },
                        &kDirectedPlan);
  wire::CoordinatorState state;
  state.add_save_at(8);
  state.set_stop_at(8);
  state.set_move_at(9);
  directives.Adopt(7, state);
  const auto [version, said] = directives.newest();
  EXPECT_EQ(version, 7);
  EXPECT_TRUE(said.save);
  EXPECT_TRUE(said.stop);
  EXPECT_FALSE(said.move);
  ASSERT_TRUE(said.state);
  EXPECT_EQ(said.state->stop_at(), 8);
}

// With a delay, workers may still pull versions before chunk 0's, and act on what was said with
// them.
TEST(Directives, WithADelayThoseOfEarlierVersionsComeBackToo) {
  const JobPlan plan = test::DelayedJob(2).plan();
  Directives directives([](int64_t, const MetricSums&, StepContext*) { return Directive(); },
                        &plan);
  wire::CoordinatorState state;
  state.add_save_at(7);  // the epoch's end: said with version 4
  state.set_stop_at(6);  // said with version 3
  state.set_move_at(-1);
  directives.Adopt(5, state);
  EXPECT_TRUE(directives.At(0, 4).save);
  EXPECT_FALSE(directives.At(0, 4).stop);
  EXPECT_TRUE(directives.At(0, 3).stop);
  EXPECT_FALSE(directives.At(0, 5).save) << "no round starts from it";
  EXPECT_TRUE(directives.At(0, 5).state);
}

// Contributions to a later round may come before the last ones to an earlier round.
TEST(Directives, WithADelayTheSumsOfEachRoundStayApart) {
  const JobPlan plan = test::DelayedJob(1).plan();
  std::vector<int64_t> samples;
  Directives directives(
      [&](int64_t, const MetricSums& metrics, StepContext*) {
        samples.push_back(metrics.samples);
        return Directive();
      },
      &plan);
  StepContext context;
  directives.Note(3, 0, Sums(4, 1));
  directives.Note(4, 0, Sums(8, 1));
  directives.Note(3, 1, Sums(4, 1));
  directives.Observe(4, &context);
  directives.Note(4, 1, Sums(8, 1));
  directives.Observe(5, &context);
  EXPECT_EQ(samples, (std::vector<int64_t>{8, 16}));
}

}  // namespace
}  // namespace kumo
