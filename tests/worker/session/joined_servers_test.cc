#include "worker/session/joined_servers.h"

#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/protocol.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kJob = 77;

class JoinedServersTest : public testing::Test {
 protected:
  static Experiment::Cluster Cluster() {
    Experiment::Cluster cluster;
    cluster.servers = {"ipc://a", "ipc://b"};
    return cluster;
  }
  JoinedServers::Welcomed Welcome(int server, uint32_t generation, uint32_t since) {
    wire::Welcome welcome;
    welcome.set_generation(generation);
    welcome.set_since(since);
    return joined_servers_.OnWelcome(server, welcome, 0);
  }
  JoinedServers::Heard Hear(int server, uint32_t generation, TimeUs now = 0) {
    wire::Header header;
    header.set_type(wire::HEARTBEAT_REPLY);
    header.set_job(kJob);
    header.set_generation(generation);
    return joined_servers_.Hear(server, header, now);
  }

  JoinedServers joined_servers_{2, Cluster(), {}, kJob, 0};
};

TEST_F(JoinedServersTest, NothingButAGreetingGoesToAServerThatHasNotWelcomedIt) {
  Welcome(0, 3, 3);
  WorkerActions wanted;
  for (const int server : {0, 1}) {
    for (const wire::Type type : {wire::HELLO, wire::PULL}) {
      SendToServerAction send{server, {}};
      send.message.header.set_type(type);
      wanted.push_back(std::move(send));
    }
  }
  wanted.push_back(InitialiseAction{});
  const WorkerActions actions = joined_servers_.Stamp(wanted);
  ASSERT_EQ(actions.size(), 4u);
  const auto header = [&](size_t i) {
    return std::get<SendToServerAction>(actions[i]).message.header;
  };
  EXPECT_EQ(header(0).type(), wire::HELLO);
  EXPECT_EQ(header(1).type(), wire::PULL);
  EXPECT_EQ(header(1).protocol(), kProtocolVersion);
  EXPECT_EQ(header(1).job(), kJob);
  EXPECT_EQ(header(1).generation(), 3u);
  EXPECT_EQ(header(2).type(), wire::HELLO);
  EXPECT_TRUE(std::holds_alternative<InitialiseAction>(actions[3]));
}

TEST_F(JoinedServersTest, WhatItHasCountsWhereTheGenerationGoesOn) {
  EXPECT_TRUE(Welcome(0, 1, 1).anew);
  EXPECT_EQ(Hear(0, 2), JoinedServers::Heard::kRejoined);
  EXPECT_EQ(joined_servers_.Missing(), 0);
  EXPECT_EQ(joined_servers_.Greeting(0, 0).header.hello().since(), 1u);
  EXPECT_FALSE(Welcome(0, 1, 1).joined) << "of the generation before";
  const JoinedServers::Welcomed welcomed = Welcome(0, 2, 1);
  EXPECT_TRUE(welcomed.joined);
  EXPECT_FALSE(welcomed.anew);
  EXPECT_FALSE(Welcome(0, 2, 1).joined) << "twice";
  EXPECT_EQ(joined_servers_.Missing(), 1);
  EXPECT_TRUE(Welcome(1, 2, 1).joined);
  EXPECT_EQ(joined_servers_.Missing(), -1);
}

TEST_F(JoinedServersTest, OnlyServer0SpeaksOfGenerations) {
  Welcome(0, 1, 1);
  Welcome(1, 1, 1);
  EXPECT_EQ(Hear(1, 2), JoinedServers::Heard::kOther);
  EXPECT_EQ(Hear(1, 1), JoinedServers::Heard::kOurs);
  EXPECT_EQ(joined_servers_.Missing(), -1);
}

TEST_F(JoinedServersTest, AServerThatForgotItIsJoinedAgainByItselfAndServer0WithAllOfThem) {
  Welcome(0, 1, 1);
  Welcome(1, 1, 1);
  joined_servers_.OnForgotten(1);
  EXPECT_EQ(joined_servers_.Missing(), 1);
  EXPECT_TRUE(joined_servers_.joined());
  EXPECT_TRUE(Welcome(1, 1, 1).joined);
  joined_servers_.OnForgotten(0);
  EXPECT_FALSE(joined_servers_.joined());
  EXPECT_EQ(joined_servers_.Greeting(0, 0).header.hello().since(), 0u) << "it has nothing";
  EXPECT_TRUE(Welcome(0, 1, 1).anew);
  EXPECT_EQ(joined_servers_.Missing(), 1);
}

TEST_F(JoinedServersTest, GreetingsAreDueUntilTheServerWelcomesIt) {
  EXPECT_THAT(joined_servers_.Tick(0).greetings, ElementsAre(0)) << "the others come after it";
  (void)joined_servers_.Greeting(0, 0);
  EXPECT_EQ(joined_servers_.NextDeadline(), 500 * kMillisecond);
  EXPECT_THAT(joined_servers_.Tick(kMillisecond).greetings, IsEmpty());
  EXPECT_THAT(joined_servers_.Tick(kSecond).greetings, ElementsAre(0));
  Welcome(0, 1, 1);
  const JoinedServers::Due due = joined_servers_.Tick(kSecond);
  EXPECT_THAT(due.greetings, ElementsAre(1));
  EXPECT_TRUE(due.heartbeats);
  EXPECT_FALSE(joined_servers_.Tick(kSecond).heartbeats);
}

TEST_F(JoinedServersTest, AHeartbeatIsDueWhenServer0IsConnectedAnew) {
  joined_servers_.OnConnected(0, 0);
  Welcome(0, 1, 1);
  Welcome(1, 1, 1);
  EXPECT_TRUE(joined_servers_.Tick(0).heartbeats);
  joined_servers_.OnConnected(1, 10 * kMillisecond);
  EXPECT_FALSE(joined_servers_.Tick(10 * kMillisecond).heartbeats);
  joined_servers_.OnConnected(0, 20 * kMillisecond);
  EXPECT_EQ(joined_servers_.NextDeadline(), 20 * kMillisecond);
  EXPECT_TRUE(joined_servers_.Tick(20 * kMillisecond).heartbeats);
  EXPECT_FALSE(joined_servers_.Tick(30 * kMillisecond).heartbeats);
}

// suspect_after_s is 10.
TEST_F(JoinedServersTest, WhoeverWasHeldUpBlamesNobodyForSilence) {
  Welcome(0, 1, 1);
  Welcome(1, 1, 1);
  (void)joined_servers_.Tick(30 * kSecond);  // after 30 s without a tick
  EXPECT_THAT(joined_servers_.Unheard(), IsEmpty());
  for (TimeUs now = 31; now <= 41; ++now) {
    Hear(0, 1, now * kSecond);
    (void)joined_servers_.Tick(now * kSecond);
  }
  EXPECT_THAT(joined_servers_.Unheard(), ElementsAre(1));
  Hear(1, 1, 42 * kSecond);
  EXPECT_THAT(joined_servers_.Unheard(), IsEmpty());
}

TEST_F(JoinedServersTest, AServerThatStaysSilentIsNamed) {
  EXPECT_EQ(joined_servers_.Tick(61 * kSecond).lost,
            "server 0 at ipc://a has not answered for 61 s");
}

}  // namespace
}  // namespace kumo
