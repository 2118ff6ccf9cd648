#include <algorithm>
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

using Trained = std::vector<std::pair<int64_t, int>>;  // round, partition

// Blocks of two minibatches, one of which is trained ahead.
SessionSettings Ahead(CodecId push_codec = CodecId::kFp32) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.overlap = 1;
  settings.experiment.sync.push_codec = push_codec;
  return settings;
}

TEST(SessionAhead, EachBlockIsBegunAheadButTheFirstOfAnEpoch) {
  Script script(Ahead());
  script.Join();
  script.Order({{0, 0}, {1, 0}});
  script.Run();
  // Rounds 3 and 7 end their epochs, and are shorter than a minibatch.
  EXPECT_EQ(script.trained_ahead,
            (Trained{{1, 0}, {1, 1}, {2, 0}, {2, 1}, {5, 0}, {5, 1}, {6, 0}, {6, 1}}));
  EXPECT_EQ(script.trained.size(), 8u * 2);
}

TEST(SessionAhead, TheNextVersionIsPushedForAndPulledMeanwhile) {
  Script script(Ahead());
  RunUntilItTrains(&script);
  ASSERT_TRUE(script.Work());  // round 0
  ASSERT_TRUE(script.ahead);
  const int chunks = static_cast<int>(script.map().chunks().size());
  EXPECT_EQ(script.CountSent(wire::PUSH), chunks);
  EXPECT_EQ(script.CountSent(wire::PULL), chunks);
  script.installs.clear();
  AnswerAll(&script);
  EXPECT_EQ(static_cast<int>(script.installs.size()), chunks);
  EXPECT_FALSE(script.train) << "one computation at a time";
  ASSERT_TRUE(script.Work());  // ahead
  ASSERT_TRUE(script.train);
  EXPECT_EQ(script.train->round.round, 1);
}

// The state of a version is that after the minibatches ahead.
TEST(SessionAhead, AStateIsPutWhenThePartitionIsAhead) {
  Script script(Ahead());
  script.save_at = {0};
  RunUntilItTrains(&script);
  EXPECT_FALSE(script.train->save_state);
  ASSERT_TRUE(script.Work());
  ASSERT_TRUE(script.ahead);
  EXPECT_TRUE(script.ahead->save_state);
  EXPECT_EQ(script.CountSent(wire::PUT_STATE), 0);
  ASSERT_TRUE(script.Work());
  // Two arrays: the way ahead, and the momentum with which the block goes on. Four trained chunks.
  ASSERT_EQ(script.CountSent(wire::PUT_STATE), 4 * 2);
  for (const auto& send : script.sent) {
    const wire::Header& header = send.message.header;
    if (header.type() == wire::PUT_STATE) {
      EXPECT_EQ(header.round(), 1);
    }
  }
}

// The partition's arrays are dropped when the block has ended: it neither trains ahead nor goes on
// with them.
TEST(SessionAhead, ALeaseThatIsLostAndGrantedAgainWithinItsBlockBeginsAnew) {
  Script script(Ahead(CodecId::kOneBit));
  script.Join();
  script.Order({{0, 0}, {1, 0}});
  script.Run(0);
  ASSERT_EQ(script.trained_ahead, (Trained{{1, 0}, {1, 1}}));
  script.sent.clear();
  script.Tick(6 * kSecond);  // asks for version 1 again
  script.RunUntilItTrains();
  ASSERT_EQ(script.trained.back(), (std::pair<int64_t, int>{1, 0}));
  script.Order({{1, 0}}, 1);
  script.Order({{0, 1}, {1, 0}}, 1);
  ASSERT_EQ(script.dropped, std::vector<int>{0});
  script.sent.clear();
  ASSERT_TRUE(script.Work());
  EXPECT_FALSE(script.ahead);
  EXPECT_EQ(script.CountSent(wire::PUSH), 0);
  EXPECT_GT(script.CountSent(wire::GET_STATE), 0);
  script.Run(1);
  EXPECT_EQ(std::ranges::count(script.trained, std::pair<int64_t, int>{1, 0}), 2);
  EXPECT_EQ(std::ranges::count(script.trained, std::pair<int64_t, int>{1, 1}), 1);
}

TEST(SessionAhead, AWorkerThatLeavesFinishesAndHandsTheStateOver) {
  Script script(Ahead());
  script.save_at = {0};
  RunUntilItTrains(&script);
  ASSERT_TRUE(script.Work());
  ASSERT_TRUE(script.ahead);
  script.Take(script.session().Leave(script.now));
  script.Order({}, 1, /*released=*/true);
  AnswerAll(&script);
  EXPECT_FALSE(script.left) << "the next worker waits for the state";
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::PUT_STATE), 4 * 2);
  AnswerAll(&script);
  ASSERT_TRUE(script.left);
  EXPECT_THAT(script.left->message(), testing::HasSubstr("left on request"));
}

// Server 0 was started again: it learns of the state that is still computed.
TEST(SessionAhead, AHelloClaimsTheStateThatIsStillComputed) {
  Script script(Ahead());
  script.save_at = {0};
  RunUntilItTrains(&script);
  ASSERT_TRUE(script.Work());
  script.Order({}, 1);
  script.sent.clear();
  script.generation = 2;
  script.since = 1;
  wire::Header told;
  told.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(0, told);
  ASSERT_EQ(script.CountSent(wire::HELLO), 1);
  std::set<std::pair<int, int64_t>> claimed;
  for (const auto& send : script.sent) {
    if (send.message.header.type() != wire::HELLO) continue;
    for (const auto& claim : send.message.header.hello().hands_over()) {
      claimed.emplace(claim.partition(), claim.version());
    }
  }
  EXPECT_EQ(claimed, (std::set<std::pair<int, int64_t>>{{0, 1}}));
}

TEST(SessionAhead, NothingIsPutOfAJobThatHasGoneBack) {
  Script script(Ahead());
  script.save_at = {0};
  RunUntilItTrains(&script);
  ASSERT_TRUE(script.Work());
  ASSERT_TRUE(script.ahead);
  script.generation = 2;
  wire::Header told;
  told.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(0, told);
  script.Welcome(0);
  script.sent.clear();
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::PUT_STATE), 0);
}

}  // namespace
}  // namespace kumo
