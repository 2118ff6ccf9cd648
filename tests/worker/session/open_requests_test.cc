#include "worker/session/open_requests.h"

#include <cstdint>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

// which: a PULL's vector, or a state's array.
Message Ask(wire::Type type, int partition, int chunk, int which, int64_t round) {
  Message message;
  message.header.set_type(type);
  message.header.set_partition(partition);
  message.header.set_chunk(chunk);
  if (type == wire::PULL) {
    message.header.set_vector(static_cast<wire::Vector>(which));
  } else {
    message.header.set_carried_array(which);
  }
  message.header.set_round(round);
  return message;
}

wire::Header AnswerTo(uint64_t request) {
  wire::Header answer;
  answer.set_request(request);
  return answer;
}

TEST(OpenRequests, WhatIsAskedForIsOpenForOneRound) {
  OpenRequests requests;
  requests.Add(1, Ask(wire::PULL, 0, 3, wire::WEIGHTS, 7), 0);
  const OpenRequests::Key pull{wire::PULL, 0, 3, wire::WEIGHTS};
  EXPECT_TRUE(requests.Waits(pull, 7));
  EXPECT_FALSE(requests.Waits(pull, 6));
  EXPECT_FALSE(requests.Waits({wire::PULL, 0, 3, wire::START}));
  // A later round takes the place of the one before.
  const uint64_t later =
      requests.Add(1, Ask(wire::PULL, 0, 3, wire::WEIGHTS, 8), 0).header.request();
  EXPECT_FALSE(requests.Waits(pull, 7));
  EXPECT_TRUE(requests.Waits(pull, 8));
  requests.Drop(later);
  EXPECT_FALSE(requests.Waits(pull, 8));
  EXPECT_TRUE(requests.empty());
}

TEST(OpenRequests, AnAnswerIsToldByItsNumberAndItsServer) {
  OpenRequests requests;
  std::set<uint64_t> numbers;
  for (const wire::Vector vector : {wire::START, wire::WEIGHTS}) {
    const uint64_t number = requests.Add(1, Ask(wire::PULL, 0, 3, vector, 7), 0).header.request();
    EXPECT_TRUE(numbers.insert(number).second);
    const OpenRequests::Request* const found = requests.Find(1, AnswerTo(number));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->message.header.vector(), vector);
    EXPECT_EQ(requests.Find(0, AnswerTo(number)), nullptr) << "another server was not asked";
  }
  for (const uint64_t number : {uint64_t{0}, uint64_t{3}, UINT64_MAX}) {
    EXPECT_EQ(requests.Find(1, AnswerTo(number)), nullptr) << number;
  }
  for (const auto* repeated : requests.Due(10 * kSecond)) {
    EXPECT_TRUE(numbers.contains(repeated->message.header.request())) << "as it was";
  }
}

TEST(OpenRequests, ANumberThatIsDoneWithIsNeverGivenAgain) {
  OpenRequests requests;
  uint64_t newest = 0;
  std::vector<uint64_t> over;
  const auto ask = [&](wire::Type type) {
    const uint64_t number = requests.Add(0, Ask(type, 2, 1, 0, 5), 0).header.request();
    EXPECT_GT(number, newest);
    newest = number;
    for (const uint64_t old : over) EXPECT_EQ(requests.Find(0, AnswerTo(old)), nullptr) << old;
    EXPECT_NE(requests.Find(0, AnswerTo(number)), nullptr);
    over.push_back(number);
  };
  ask(wire::GET_STATE);
  ask(wire::GET_STATE);  // in place of the former
  requests.Drop(wire::GET_STATE, 2);
  ask(wire::GET_STATE);
  requests.Clear();
  ask(wire::GET_STATE);
  requests.Drop(newest);
  ask(wire::GET_STATE);
}

TEST(OpenRequests, WhatIsHeldIsOpenUntilItsNumberIsDropped) {
  OpenRequests requests;
  const uint64_t push = requests.Add(1, Ask(wire::PUSH, 2, 1, 0, 4), 0).header.request();
  const uint64_t other = requests.Add(1, Ask(wire::PUSH, 2, 3, 0, 4), 0).header.request();
  requests.Hold(push, kSecond);
  EXPECT_FALSE(requests.Waits({wire::PUSH, 2, 1, 0}));
  EXPECT_TRUE(requests.Waits({wire::PUSH, 2, 3, 0}));
  EXPECT_TRUE(requests.Find(1, AnswerTo(push))->held);
  requests.Drop(other);
  ASSERT_EQ(requests.Reopen(1, kSecond).size(), 1u);
  EXPECT_FALSE(requests.Find(1, AnswerTo(push))->held);
  requests.Drop(push);
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
