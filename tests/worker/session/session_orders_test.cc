#include "worker/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/session/session_harness.h"

namespace kumo {
namespace {

using test::Script;
using test::SmallSettings;

// --- Saving, stopping, leases.

TEST(Session, ACheckpointsRoundPutsWhatIsCarriedBeforeTheNextBlock) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.save_at = {1};
  script.Join();
  script.Order({{2, 0}});
  while (script.trained.empty() || script.trained.back().first < 1) {
    if (script.sent.empty()) {
      ASSERT_TRUE(script.Work());
    } else {
      const auto send = script.sent.front();
      script.sent.pop_front();
      script.Answer(send);
    }
  }
  ASSERT_TRUE(script.train->save_state);
  std::erase_if(script.sent,
                [](const auto& send) { return send.message.header.type() != wire::PULL; });
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::PUT_STATE), 4);  // chunks that are trained
  std::deque<SendToServerAction> puts;
  for (const auto& send : std::exchange(script.sent, {})) {
    if (send.message.header.type() == wire::PUSH) {
      EXPECT_TRUE(send.message.header.save());
    }
    if (send.message.header.type() == wire::PUT_STATE) {
      EXPECT_EQ(send.message.header.round(), 2);
      puts.push_back(send);
    } else {
      script.Answer(send);
    }
  }
  for (auto send = script.sent; const auto& s : send) script.Answer(s);
  for (const auto& put : puts) {
    EXPECT_FALSE(script.train);
    script.Answer(put);
  }
  ASSERT_TRUE(script.train);
  EXPECT_FALSE(script.train->save_state);
}

TEST(Session, AStopEndsWithItsRoundAndWaitsForTheLastWord) {
  Script script;
  script.stop_at = 2;
  script.save_at = {2};
  script.Join();
  script.Order({{0, 0}, {1, 0}, {2, 0}});
  script.Run();
  ASSERT_FALSE(script.trained.empty());
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{2, 2}));
  EXPECT_FALSE(script.left);
  wire::Header stopped;
  stopped.set_type(wire::HEARTBEAT_REPLY);
  stopped.mutable_orders()->set_finished(true);
  stopped.mutable_orders()->set_stopped(true);
  script.ReceiveHeader(0, stopped);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
}

// The version that said so is gone by the time it joins.
TEST(Session, WhoJoinsAfterAStopWasDecidedHearsOfItWithItsOrders) {
  Script script;
  script.start_version = 1;
  script.Join();
  script.Order({{0, 1}}, 2, false, 2);
  script.Run();
  ASSERT_EQ(script.trained.size(), 1u);
  EXPECT_EQ(script.trained[0], (std::pair<int64_t, int>{1, 0}));
  script.Order({{0, 1}, {1, 2}}, 2, false, 2);
  script.Run();
  EXPECT_EQ(script.trained.size(), 1u);
}

TEST(Session, ALeaseThatIsTakenAwayIsDroppedAndItsBlockUnderWayIsNotPushed) {
  Script script;
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.RunUntilItTrains();
  ASSERT_EQ(script.train->partition, 1);
  script.Order({{2, 0}});
  script.Order({{2, 0}});  // repeated: nothing new
  EXPECT_EQ(script.dropped, (std::vector<int>{1}));
  script.sent.clear();
  script.HandOn({1});
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::PUSH), 0);
  ASSERT_TRUE(script.train);
  EXPECT_EQ(script.train->partition, 2);
}

// Some of its chunks may have closed their round: the others must follow.
TEST(Session, ABlockOfWhichChunksArePushedIsPushedToItsEndWhoeverHasTheLease) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.RunUntilItTrains();
  script.HandOn({2});
  script.Take(script.session().Leave(script.now));
  script.Order({}, 0, /*released=*/true);
  EXPECT_FALSE(script.left) << "it has something to push";
  script.HandOn({1});
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::PUSH), static_cast<int>(script.map().chunks().size()));
  EXPECT_EQ(script.CountSent(wire::PUT_STATE), 0);
  script.Run();
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.trained.size(), 1u);
}

// What it has to give up soon it does not begin to push.
TEST(Session, ToldToLeaveItPushesNothingEarly) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.RunUntilItTrains();
  script.Take(script.session().Leave(script.now));
  script.HandOn({1, 2});
  EXPECT_EQ(script.CountSent(wire::PUSH), 0);
  script.Order({}, 0, /*released=*/true);
  EXPECT_TRUE(script.left);
}

TEST(Session, ARoundThatClosedWithoutItIsSkipped) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  wire::Header gone;
  gone.set_type(wire::GONE);
  gone.set_chunk(2);
  gone.set_round(3);
  for (const auto& send : script.sent) {
    const wire::Header& header = send.message.header;
    if (header.type() == wire::PULL && header.chunk() == 2) gone.set_request(header.request());
  }
  script.ReceiveHeader(0, gone);
  script.Run();
  EXPECT_TRUE(script.trained.empty());  // is it ours still?
  script.Order({{1, 0}}, 3);
  script.Run();
  ASSERT_FALSE(script.trained.empty());
  EXPECT_EQ(script.trained.front(), (std::pair<int64_t, int>{3, 1}));
}

// --- Leases that move.

TEST(Session, WhereLeasesMoveNobodyGoesOnWithoutOrders) {
  Script script;
  script.move_at = 1;
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.Run();
  EXPECT_EQ(script.trained.back().first, 1);
  script.Order({{1, 0}, {2, 0}}, 1);  // of before
  script.Run();
  EXPECT_EQ(script.trained.back().first, 1);
  script.Order({{2, 0}}, 2);
  script.Run(2);
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{2, 2}));
  EXPECT_EQ(script.trained.size(), 5u);
}

TEST(Session, AStragglersPartitionIsComputedForItsRoundAlone) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.Run(0);  // waits for version 1
  ASSERT_EQ(script.trained.size(), 1u);
  wire::Header header;
  header.set_type(wire::HEARTBEAT_REPLY);
  for (const auto& [partition, until] : std::map<int, int64_t>{{1, 0}, {2, 1}}) {
    auto* lease = header.mutable_orders()->add_leases();
    lease->set_partition(partition);
    lease->set_until(until);
  }
  script.ReceiveHeader(0, header);
  script.Run(0);
  ASSERT_EQ(script.trained.size(), 2u);
  EXPECT_EQ(script.trained[1], (std::pair<int64_t, int>{0, 2}));
  script.Tick(6 * kSecond);  // asks for version 1 again
  script.Run(1);
  EXPECT_EQ(script.trained.size(), 3u);
  EXPECT_EQ(script.trained[2], (std::pair<int64_t, int>{1, 1}));
  script.Order({{1, 0}});
  EXPECT_THAT(script.dropped, testing::ElementsAre(2));
}

TEST(Session, AHelpersOrderDoesNotStandInForALease) {
  for (const bool lease_first : {false, true}) {
    Script script;
    script.Join();
    wire::Header header;
    header.set_type(wire::HEARTBEAT_REPLY);
    for (const bool is_lease : {lease_first, !lease_first}) {
      auto* lease = header.mutable_orders()->add_leases();
      lease->set_partition(1);
      if (!is_lease) lease->set_until(1);
    }
    script.ReceiveHeader(0, header);
    script.Run(2);
    EXPECT_GE(script.trained.size(), 3u);
  }
}

TEST(Session, OrdersThatWereOvertakenAreIgnored) {
  Script script;
  script.Join();
  script.Order({{1, 3}}, 3);
  script.Order({{2, 0}}, 2);
  EXPECT_TRUE(script.dropped.empty());
}

}  // namespace
}  // namespace kumo
