#include "worker/session/open_requests.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr int kWindow = 100;

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

std::set<uint64_t> Numbers(const std::vector<const OpenRequest*>& requests) {
  std::set<uint64_t> numbers;
  for (const auto* request : requests) numbers.insert(request->message.header.request());
  return numbers;
}

TEST(OpenRequests, WhatIsAskedForIsOpenForOneRound) {
  OpenRequests requests(kWindow, 1);
  const uint64_t pull = requests.Add(1, Ask(wire::PULL, 0, 3, wire::WEIGHTS, 7));
  const uint64_t other = requests.Add(1, Ask(wire::PULL, 0, 3, wire::START, 7));
  ASSERT_NE(requests.Find(1, AnswerTo(pull)), nullptr);
  // A later round takes the place of the one before.
  const uint64_t later = requests.Add(1, Ask(wire::PULL, 0, 3, wire::WEIGHTS, 8));
  EXPECT_EQ(requests.Find(1, AnswerTo(pull)), nullptr);
  EXPECT_NE(requests.Find(1, AnswerTo(other)), nullptr);
  ASSERT_NE(requests.Find(1, AnswerTo(later)), nullptr);
  EXPECT_EQ(requests.Find(1, AnswerTo(later))->message.header.round(), 8);
  EXPECT_TRUE(requests.Waits(wire::PULL, 0));
  requests.Drop(later);
  requests.Drop(other);
  EXPECT_FALSE(requests.Waits(wire::PULL, 0));
  EXPECT_TRUE(requests.empty());
}

TEST(OpenRequests, AnAnswerIsToldByItsNumberAndItsServer) {
  OpenRequests requests(kWindow, 1);
  std::set<uint64_t> numbers;
  for (const wire::Vector vector : {wire::START, wire::WEIGHTS}) {
    const uint64_t number = requests.Add(1, Ask(wire::PULL, 0, 3, vector, 7));
    EXPECT_TRUE(numbers.insert(number).second);
    const OpenRequest* const found = requests.Find(1, AnswerTo(number));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->message.header.vector(), vector);
    EXPECT_EQ(requests.Find(0, AnswerTo(number)), nullptr) << "another server was not asked";
  }
  for (const uint64_t number : {uint64_t{0}, uint64_t{3}, UINT64_MAX}) {
    EXPECT_EQ(requests.Find(1, AnswerTo(number)), nullptr) << number;
  }
  EXPECT_EQ(Numbers(requests.Send(0)), numbers);
  EXPECT_EQ(Numbers(requests.Due(10 * kSecond)), numbers) << "repeated as it was";
}

TEST(OpenRequests, ANumberThatIsDoneWithIsNeverGivenAgain) {
  OpenRequests requests(kWindow, 1);
  uint64_t newest = 0;
  std::vector<uint64_t> over;
  const auto ask = [&](wire::Type type) {
    const uint64_t number = requests.Add(0, Ask(type, 2, 1, 0, 5));
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
  OpenRequests requests(kWindow, 1);
  const uint64_t push = requests.Add(1, Ask(wire::PUSH, 2, 1, 0, 4));
  const uint64_t other = requests.Add(1, Ask(wire::PUSH, 2, 3, 0, 4));
  EXPECT_EQ(requests.Send(0).size(), 2u);
  requests.Hold(push, kSecond);
  EXPECT_TRUE(requests.Waits(wire::PUSH, 2)) << "for the other";
  EXPECT_TRUE(requests.Find(1, AnswerTo(push))->held);
  EXPECT_FALSE(requests.Find(1, AnswerTo(other))->held);
  requests.Drop(other);
  EXPECT_FALSE(requests.Waits(wire::PUSH, 2));
  EXPECT_TRUE(requests.Send(kSecond).empty());
  requests.Reopen(1);
  EXPECT_EQ(Numbers(requests.Send(kSecond)), std::set{push});
  EXPECT_FALSE(requests.Find(1, AnswerTo(push))->held);
  requests.Drop(push);
  EXPECT_TRUE(requests.empty());
}

TEST(OpenRequests, AreKnownAndForgottenByTypeAndPartition) {
  OpenRequests requests(kWindow, 1);
  requests.Add(0, Ask(wire::GET_STATE, 2, 0, 1, 5));
  requests.Add(1, Ask(wire::GET_STATE, 2, 1, 0, 5));
  requests.Add(1, Ask(wire::PUSH, 2, 1, 0, 4));
  requests.Add(0, Ask(wire::GET_STATE, 4, 0, 0, 5));
  EXPECT_TRUE(requests.Waits(wire::GET_STATE, 2));
  EXPECT_FALSE(requests.Waits(wire::GET_STATE, 3));
  EXPECT_FALSE(requests.Waits(wire::PUSH, 4));
  EXPECT_EQ(requests.First(wire::PULL), nullptr);
  EXPECT_EQ(requests.First(wire::PUSH)->server, 1);
  requests.Drop(wire::GET_STATE, 2);
  EXPECT_FALSE(requests.Waits(wire::GET_STATE, 2));
  EXPECT_TRUE(requests.Waits(wire::GET_STATE, 4));
  EXPECT_TRUE(requests.Waits(wire::PUSH, 2));
}

TEST(OpenRequests, AreRepeatedMoreAndMoreRarelyUntilAnswered) {
  OpenRequests requests(kWindow, 1);
  requests.Add(0, Ask(wire::PUSH, 0, 0, 0, 1));
  EXPECT_GT(requests.NextDue(), TimeUs{1} << 60) << "it has to be sent first";
  EXPECT_EQ(requests.Send(100 * kSecond).size(), 1u);
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

// A server that answers at all will come to the rest: what a slow network brings one after the
// other is not asked for twice.
TEST(OpenRequests, AreNotRepeatedWhileTheServerAnswersOthers) {
  OpenRequests requests(kWindow, 1);
  for (int server : {0, 1}) {
    for (int chunk = 0; chunk < 10; ++chunk) {
      requests.Add(server, Ask(wire::PULL, 0, 2 * chunk + server, wire::START, 1));
    }
  }
  EXPECT_EQ(requests.Send(0).size(), 20u);
  std::set<uint64_t> repeated;
  for (uint64_t number = 1; number <= 9; ++number) {  // of server 0, every 3 s
    requests.Answered(number, static_cast<TimeUs>(number) * 3 * kSecond);
    repeated.merge(Numbers(requests.Due(static_cast<TimeUs>(number) * 3 * kSecond)));
  }
  EXPECT_EQ(repeated.size(), 10u) << "server 1 said nothing";
  EXPECT_GT(*repeated.begin(), 10u);
  EXPECT_TRUE(Numbers(requests.Due(32 * kSecond)).contains(10)) << "5 s after the last answer";
}

// Scenario: 30 states are held, each repeated and acknowledged every 40 s, and one was lost.
TEST(OpenRequests, WhatIsHeldAndAnsweredForEverDelaysNothingElse) {
  OpenRequests requests(kWindow, 1);
  for (int chunk = 0; chunk < 30; ++chunk) requests.Add(0, Ask(wire::PUT_STATE, 0, chunk, 0, 1));
  EXPECT_EQ(requests.Send(0).size(), 30u);
  for (uint64_t number = 1; number <= 29; ++number) {
    requests.Hold(number, static_cast<TimeUs>(number) * kSecond / 30);
  }
  std::set<uint64_t> repeated;
  for (TimeUs now = kSecond; now < 20 * kSecond; now += kSecond) {
    requests.Hold(1, now);
    repeated.merge(Numbers(requests.Due(now)));
  }
  EXPECT_EQ(repeated, std::set<uint64_t>{30});
}

// --- Windows.

TEST(OpenRequests, AWindowOfEachKindIsOnItsWayAndTheOthersFollowInOrder) {
  OpenRequests requests(4, 1);
  std::vector<uint64_t> pushes;
  std::vector<uint64_t> pulls;
  for (int chunk = 0; chunk < 10; ++chunk) {
    pulls.push_back(requests.Add(0, Ask(wire::PULL, 0, chunk, wire::START, 1)));
    pushes.push_back(requests.Add(0, Ask(wire::PUSH, 0, chunk, 0, 0)));
  }
  EXPECT_EQ(requests.Send(0).size(), 8u);
  EXPECT_TRUE(requests.Send(0).empty());
  // The pulls wait for a version that needs all the pushes: these do not wait behind them.
  for (int chunk = 0; chunk < 10; ++chunk) {
    ASSERT_NE(requests.Find(0, AnswerTo(pushes[chunk])), nullptr);
    requests.Answered(pushes[chunk], 0);
    const std::set<uint64_t> next = Numbers(requests.Send(0));
    EXPECT_EQ(next, chunk < 6 ? std::set{pushes[chunk + 4]} : std::set<uint64_t>());
  }
  // What is held waits for nothing; another server has a window of its own.
  requests.Hold(pulls[0], 0);
  EXPECT_EQ(Numbers(requests.Send(0)), std::set{pulls[4]});
  const uint64_t elsewhere = requests.Add(1, Ask(wire::PULL, 0, 99, wire::START, 1));
  EXPECT_EQ(Numbers(requests.Send(0)), std::set{elsewhere});
}

// A model of two servers: whatever is asked, answered, dropped, lost with a connection or held, in
// whatever order, no window is exceeded, each request is sent in its turn, and all are answered.
TEST(OpenRequests, NothingIsLostAndNoWindowIsExceeded) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](uint64_t n) { return static_cast<int>(random() % n); };
    constexpr int kSmall = 3;
    OpenRequests requests(kSmall, 1);
    constexpr std::array kTypes = {wire::PUSH, wire::PULL, wire::GET_STATE};
    std::map<std::pair<int, wire::Type>, std::deque<uint64_t>> at;  // sent, not answered
    std::set<uint64_t> open;
    // A server that is not joined gets no request (JoinedServers::Stamp) before Reopen.
    std::array<bool, 2> joined = {true, true};
    const auto lose = [&](int server) {
      for (const wire::Type lost : kTypes) at[{server, lost}].clear();
    };
    const auto join = [&](int server) {
      joined[server] = true;
      requests.Reopen(server);
    };
    const auto send = [&] {
      for (const auto* request : requests.Send(0)) {
        if (!joined[request->server]) continue;
        const wire::Header& asked = request->message.header;
        auto& there = at[{request->server, asked.type()}];
        EXPECT_TRUE(there.empty() || there.back() < asked.request()) << "seed " << seed;
        there.push_back(asked.request());
        EXPECT_LE(there.size(), static_cast<size_t>(kSmall)) << "seed " << seed;
      }
    };
    int chunk = 0;
    for (int step = 0; step < 300; ++step) {
      const int server = draw(2);
      const wire::Type type = kTypes[draw(kTypes.size())];
      auto& there = at[{server, type}];
      const int what = draw(11);
      if (what < 5) {
        open.insert(requests.Add(server, Ask(type, 0, chunk++, 0, 0)));
      } else if (what < 9 && !there.empty()) {
        const auto one = there.begin() + draw(there.size());
        requests.Answered(*one, 0);
        open.erase(*one);
        there.erase(one);
      } else if (what == 9) {
        lose(server);
        requests.SendAgain(server);
      } else if (what == 10 && joined[server]) {
        lose(server);
        joined[server] = false;
      } else if (what == 10) {
        join(server);
      }
      send();
    }
    for (const int server : {0, 1}) {
      if (!joined[server]) join(server);
    }
    send();
    for (size_t rest = open.size(); rest > 0; --rest) {
      const auto busy = std::ranges::find_if(at, [](const auto& a) { return !a.second.empty(); });
      ASSERT_NE(busy, at.end()) << "seed " << seed << ": " << rest << " are never sent";
      requests.Answered(busy->second.front(), 0);
      busy->second.pop_front();
      send();
    }
    EXPECT_TRUE(requests.empty());
  }
}

}  // namespace
}  // namespace kumo
