#include "worker/session/open_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

Message Ask(wire::Type type, int partition, int chunk, int slot, int64_t round) {
  Message message;
  message.header.set_type(type);
  message.header.set_partition(partition);
  message.header.set_chunk(chunk);
  message.header.set_slot(slot);
  message.header.set_round(round);
  return message;
}

TEST(OpenRequests, AnAnswerCountsForTheOpenRoundOnly) {
  OpenRequests requests;
  requests.Add(1, Ask(wire::PULL, 0, 3, wire::WEIGHTS, 7), 0);
  const OpenRequests::Key pull{wire::PULL, 0, 3, wire::WEIGHTS};
  EXPECT_TRUE(requests.Waits(pull, 7));
  EXPECT_FALSE(requests.Waits(pull, 6));
  EXPECT_FALSE(requests.Waits({wire::PULL, 0, 3, wire::START}));
  // A later round takes the place of the one before.
  requests.Add(1, Ask(wire::PULL, 0, 3, wire::WEIGHTS, 8), 0);
  EXPECT_FALSE(requests.Waits(pull, 7));
  EXPECT_TRUE(requests.Waits(pull, 8));
  requests.Drop(pull);
  EXPECT_FALSE(requests.Waits(pull, 8));
  EXPECT_TRUE(requests.empty());
}

TEST(OpenRequests, AreKnownAndForgottenByTypeAndPartition) {
  OpenRequests requests;
  requests.Add(0, Ask(wire::GET_STATE, 2, 0, 1, 5), 0);
  requests.Add(1, Ask(wire::GET_STATE, 2, 1, 0, 5), 0);
  requests.Add(1, Ask(wire::PUSH, 2, 1, 0, 4), 0);
  requests.Add(0, Ask(wire::GET_STATE, 4, 0, 0, 5), 0);
  EXPECT_TRUE(requests.Waits(wire::GET_STATE, 2));
  EXPECT_FALSE(requests.Waits(wire::GET_STATE, 3));
  EXPECT_FALSE(requests.Waits(wire::PUSH, 4));
  EXPECT_EQ(requests.OfServer(1).size(), 2u);
  EXPECT_EQ(requests.First(wire::PULL), nullptr);
  EXPECT_EQ(requests.First(wire::PUSH)->server, 1);
  requests.Drop(wire::GET_STATE, 2);
  EXPECT_FALSE(requests.Waits(wire::GET_STATE, 2));
  EXPECT_TRUE(requests.Waits(wire::GET_STATE, 4));
  EXPECT_TRUE(requests.Waits(wire::PUSH, 2));
}

TEST(OpenRequests, AreRepeatedMoreAndMoreRarelyUntilAnswered) {
  OpenRequests requests;
  requests.Add(0, Ask(wire::PUSH, 0, 0, 0, 1), 100 * kSecond);
  std::vector<TimeUs> repeated;
  for (int i = 0; i < 6; ++i) {
    const TimeUs due = requests.NextDue();
    EXPECT_TRUE(requests.Due(due - 1).empty());
    EXPECT_EQ(requests.Due(due).size(), 1u);
    repeated.push_back((due - 100 * kSecond) / kSecond);
  }
  EXPECT_THAT(repeated, testing::ElementsAre(5, 15, 35, 75, 115, 155));
  requests.Clear();
  EXPECT_GT(requests.NextDue(), TimeUs{1} << 60);
}

}  // namespace
}  // namespace kumo
