
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/run_history.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {

namespace {

using testing::HasSubstr;

TEST(RunHistory, IsNeverLongerThanItsLimitsAndSpansTheWholeRun) {
  RunHistory history;
  constexpr int kSeconds = 100'000;
  for (int i = 1; i <= kSeconds; ++i) {
    HistoryPoint point;
    point.until_s = i;
    point.seconds = 1;
    point.sums = test::SumsOf(10, 10.0 * i, 0);
    history.Add(point);
    history.Add(HistoryEvent{HistoryEvent::Kind::kCheckpoint, static_cast<double>(i), i, "saved"});
  }
  int64_t samples = 0;
  double seconds = 0, loss = 0;
  for (const HistoryPoint& point : history.points()) {
    samples += point.sums.samples;
    seconds += point.seconds;
    loss += point.sums.sums[0];
  }
  EXPECT_LE(history.points().size(), RunHistory::kPoints);
  EXPECT_GE(history.points().size(), RunHistory::kPoints / 2 - 1);
  EXPECT_EQ(samples, 10 * kSeconds);
  EXPECT_EQ(seconds, kSeconds);
  EXPECT_EQ(loss, 10.0 * kSeconds * (kSeconds + 1) / 2) << "merged, not thrown away";
  EXPECT_EQ(history.points().back().until_s, kSeconds);
  EXPECT_EQ(history.events().size(), RunHistory::kEvents);
  EXPECT_EQ(history.events().front().round, 1);
  EXPECT_EQ(history.events().back().round, kSeconds);
}

TEST(RunHistory, APointsFiguresAreMeansAndRatesOfItsStretch) {
  RunHistory history;
  history.SetMetrics(test::LossAndAccuracy());
  HistoryPoint point;
  point.until_s = 10;
  point.seconds = 4;
  point.round = 7;
  point.sums = test::SumsOf(200, 50, 150);
  point.learning_rate.Add(0.1);
  point.compute_ms.Add(30);
  point.compute_ms.Add(50);
  point.workers = 2;
  history.Add(point);
  const std::string json = history.Json();
  EXPECT_THAT(json, HasSubstr("\"elapsed_time\":[10]"));
  EXPECT_THAT(json, HasSubstr("\"round\":[7]"));
  EXPECT_THAT(json, HasSubstr("\"main/loss\":[0.25]"));
  EXPECT_THAT(json, HasSubstr("\"main/accuracy\":[0.75]"));
  EXPECT_THAT(json, HasSubstr("\"samples_per_second\":[50]"));
  EXPECT_THAT(json, HasSubstr("\"lr\":[0.1]"));
  EXPECT_THAT(json, HasSubstr("\"compute_ms\":[40]"));
  EXPECT_THAT(json, HasSubstr("\"wait_ms\":[null]")) << "nothing is known of it";
}

// Columns would not fit each other, and a page would show nothing at all.
TEST(RunHistory, WhatIsNoNumberIsNullAndEveryPointIsInEveryColumn) {
  RunHistory history;
  history.SetMetrics(test::LossAndAccuracy());
  HistoryPoint point;
  point.sums = test::SumsOf(10, std::numeric_limits<double>::quiet_NaN(), 0);
  history.Add(point);
  point.sums = test::SumsOf(10, std::numeric_limits<double>::infinity(), 0);
  history.Add(point);
  point.sums = {};  // no round was closed
  history.Add(point);
  history.Add(HistoryEvaluation{
      1, 1, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"accuracy", 0.5}}});
  const std::string json = history.Json();
  EXPECT_THAT(json, HasSubstr("\"main/loss\":[null,null,null]"));
  EXPECT_THAT(json, HasSubstr("\"main/accuracy\":[0,0,null]"));
  EXPECT_THAT(json, HasSubstr("\"samples_per_second\":[null,null,null]")) << "in no time";
  EXPECT_THAT(json, HasSubstr("\"validation/main/loss\":[null]"));
  EXPECT_THAT(json, HasSubstr("\"validation/main/accuracy\":[0.5]"));
}

TEST(RunHistory, WhatHappenedIsInOrderAndItsTextsMayHoldAnything) {
  RunHistory history;
  using Kind = HistoryEvent::Kind;
  history.Add(HistoryEvent{Kind::kStart, 0, 0, "begins"});
  history.Add(HistoryEvent{Kind::kCheckpoint, 1, 3, "saved"});
  history.Add(HistoryEvent{Kind::kWorkerLost, 2, 5, "\"</script>\n\xff was lost"});
  history.Add(HistoryEvent{Kind::kCheckpoint, 3, 6, "saved"});
  std::vector<int64_t> rounds;
  for (const HistoryEvent& event : history.events()) rounds.push_back(event.round);
  EXPECT_THAT(rounds, testing::ElementsAre(0, 3, 5, 6));
  EXPECT_THAT(history.Json(),
              HasSubstr("{\"kind\":\"worker_lost\",\"elapsed_time\":2,\"round\":5,\"text\":"
                        "\"\\\"</script>\\n\\ufffd was lost\"}"));
}

// Checkpoints are many, and would else leave no room for faults, which are few.
TEST(RunHistory, FaultsAreNotForgottenForCheckpoints) {
  RunHistory history;
  using Kind = HistoryEvent::Kind;
  history.Add(HistoryEvent{Kind::kWentBack, 0.5, 1, "went back"});
  for (int i = 1; i <= 1000; ++i) {
    history.Add(HistoryEvent{Kind::kCheckpoint, static_cast<double>(i), i, "saved"});
  }
  EXPECT_EQ(history.events().front().kind, Kind::kWentBack);
  EXPECT_EQ(history.events()[1].round, 1) << "the first tells how it began";
  EXPECT_EQ(history.events().size(), RunHistory::kEvents + 1);
}

}  // namespace

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
