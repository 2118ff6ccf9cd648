// Delay in gradient mode (sync.overlap): the session's part of it.
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/session/session_harness.h"
#include "worker/session/session.h"

namespace kumo {
namespace {

using test::AnswerAll;
using test::RunUntilItTrains;
using test::Script;
using test::SmallSettings;
using testing::ElementsAre;
using testing::Pair;

SessionSettings Delayed(int delay) {
  SessionSettings settings = SmallSettings();
  settings.experiment = test::DelayedJob(delay).experiment;
  settings.experiment.cluster.servers = {"ipc://somewhere"};
  settings.identity = IdentityOf(settings.experiment);
  return settings;
}

TEST(SessionDelay, EachRoundIsTrainedFromItsBaseInOrder) {
  for (const int delay : {0, 1, 2, 3, 8}) {
    SCOPED_TRACE(delay);
    Script script(Delayed(delay));
    script.Join();
    script.Order({{0, 0}, {2, 0}});
    script.Run();
    const JobPlan& plan = script.session().shape().plan;
    ASSERT_EQ(script.trained.size(), static_cast<size_t>(2 * plan.rounds()));
    for (size_t i = 0; i < script.trained.size(); ++i) {
      const int64_t round = static_cast<int64_t>(i / 2);
      EXPECT_THAT(script.trained[i], Pair(round, i % 2 == 0 ? 0 : 2));
      EXPECT_THAT(script.trained_from[i], ElementsAre(static_cast<float>(plan.BaseOf(round))));
    }
    EXPECT_EQ(script.evaluated.size(), 2u * 2);
  }
}

TEST(SessionDelay, TheNextRoundIsTrainedWhileTheLastOneIsExchanged) {
  Script script(Delayed(1));
  RunUntilItTrains(&script);
  script.sent.clear();
  const int chunks = static_cast<int>(script.map().chunks().size());
  ASSERT_TRUE(script.Work());  // round 0, whose pushes nobody answers
  ASSERT_TRUE(script.train);
  EXPECT_EQ(script.train->round.round, 1);
  EXPECT_EQ(script.CountSent(wire::PUSH), chunks);
  EXPECT_EQ(script.CountSent(wire::PULL), chunks) << "of version 1, for round 2";
  ASSERT_TRUE(script.Work());
  EXPECT_FALSE(script.train) << "round 2 starts from version 1";
  EXPECT_EQ(script.CountSent(wire::PUSH), 2 * chunks);
  EXPECT_EQ(script.CountSent(wire::PULL), chunks);
  AnswerAll(&script);
  ASSERT_TRUE(script.train);
  EXPECT_EQ(script.train->round.round, 2);
}

TEST(SessionDelay, WhatIsHiddenIsNoWait) {
  Script script(Delayed(1));
  script.times = {.compute_ms = 30, .coding_ms = 2};
  RunUntilItTrains(&script);
  for (int round = 0; round < 3; ++round) {
    script.now += 30 * kMillisecond;
    ASSERT_TRUE(script.Work());
    AnswerAll(&script);  // while the next round is trained
    ASSERT_TRUE(script.train);
  }
  script.sent.clear();
  script.Tick(10 * kSecond);  // a heartbeat is due
  for (const auto& send : script.sent) {
    if (send.message.header.type() != wire::HEARTBEAT) continue;
    const wire::WorkerReport& report = send.message.header.worker_report();
    EXPECT_EQ(report.wait_ms(), 0);
    EXPECT_EQ(report.network_ms(), 2);
    EXPECT_TRUE(report.has_wait_ms());
    return;
  }
  ADD_FAILURE() << "no heartbeat";
}

// A worker that was left behind asks for the versions on the way to its round's base, if pulls are
// differences, and goes straight there if one of them is gone.
TEST(SessionDelay, AVersionOnTheWayThatIsGoneIsPassedOver) {
  SessionSettings settings = Delayed(2);
  settings.experiment.sync.pull_codec = CodecId::kInt8;
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  RunUntilItTrains(&script);
  script.sent.clear();
  ASSERT_TRUE(script.Work());           // round 0
  ASSERT_TRUE(script.Work());           // round 1
  ASSERT_TRUE(script.Work());           // round 2; round 3 starts from version 1
  script.Order({{0, 5}}, /*as_of=*/5);  // from version 3
  for (int i = 0; i < 100 && !script.train && !script.sent.empty(); ++i) {
    SendToServerAction send = script.sent.front();
    script.sent.pop_front();
    const wire::Header& asked = send.message.header;
    if (asked.type() != wire::PULL) {
      script.Answer(send);
    } else if (asked.round() < 3) {
      wire::Header gone;
      gone.set_type(wire::GONE);
      gone.set_request(asked.request());
      gone.set_chunk(asked.chunk());
      gone.set_round(5);
      script.ReceiveHeader(0, gone);
    } else {
      send.message.header.clear_base();  // as a whole
      script.Answer(send);
    }
  }
  ASSERT_TRUE(script.train);
  EXPECT_EQ(script.train->round.round, 5);
  EXPECT_THAT(script.trained_from.back(), ElementsAre(3));
}

// A push whose answer is lost is repeated, although the next round was pushed.
TEST(SessionDelay, PushesOfAllOpenRoundsAreOpenRequests) {
  Script script(Delayed(2));
  RunUntilItTrains(&script);
  const int chunks = static_cast<int>(script.map().chunks().size());
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(script.Work());
  script.sent.clear();
  script.Tick(10 * kSecond);
  EXPECT_EQ(script.CountSent(wire::PUSH), 3 * chunks);
}

TEST(SessionDelay, AStopAndACheckpointAreOfTheLastRoundThatStartsFromTheVersion) {
  Script script(Delayed(2));
  script.save_at = {0, 1};
  script.stop_at = 1;
  script.Join();
  script.Order({{0, 0}});
  script.Run();
  std::vector<int64_t> saved;
  for (const auto& send : script.log) {
    const wire::Header& header = send.message.header;
    if (header.type() == wire::PUSH && header.chunk() == 0 && header.save()) {
      saved.push_back(header.round());
    }
  }
  EXPECT_THAT(saved, ElementsAre(2, 3));
  EXPECT_EQ(script.trained.back().first, 3);
}

}  // namespace
}  // namespace kumo
