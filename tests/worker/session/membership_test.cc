#include "worker/session/membership.h"

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

class MembershipTest : public testing::Test {
 protected:
  static Experiment::Cluster Cluster() {
    Experiment::Cluster cluster;
    cluster.servers = {"ipc://a", "ipc://b"};
    return cluster;
  }
  Membership::Welcomed Welcome(int server, uint32_t generation, uint32_t since) {
    wire::Welcome welcome;
    welcome.set_generation(generation);
    welcome.set_since(since);
    return membership_.OnWelcome(server, welcome, 0);
  }
  Membership::Heard Hear(int server, uint32_t generation, TimeUs now = 0) {
    wire::Header header;
    header.set_type(wire::HEARTBEAT_REPLY);
    header.set_job(kJob);
    header.set_generation(generation);
    return membership_.Hear(server, header, now);
  }

  Membership membership_{2, Cluster(), {}, kJob, 0};
};

TEST_F(MembershipTest, NothingButAGreetingGoesToAServerThatHasNotWelcomedIt) {
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
  const WorkerActions actions = membership_.Stamp(wanted);
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

TEST_F(MembershipTest, WhatItHasCountsWhereTheGenerationGoesOn) {
  EXPECT_TRUE(Welcome(0, 1, 1).anew);
  EXPECT_EQ(Hear(0, 2), Membership::Heard::kRejoined);
  EXPECT_EQ(membership_.Missing(), 0);
  EXPECT_EQ(membership_.Greeting(0, 0).header.hello().since(), 1u);
  EXPECT_FALSE(Welcome(0, 1, 1).joined) << "of the generation before";
  const Membership::Welcomed welcomed = Welcome(0, 2, 1);
  EXPECT_TRUE(welcomed.joined);
  EXPECT_FALSE(welcomed.anew);
  EXPECT_FALSE(Welcome(0, 2, 1).joined) << "twice";
  EXPECT_EQ(membership_.Missing(), 1);
  EXPECT_TRUE(Welcome(1, 2, 1).joined);
  EXPECT_EQ(membership_.Missing(), -1);
}

TEST_F(MembershipTest, OnlyServer0SpeaksOfGenerations) {
  Welcome(0, 1, 1);
  Welcome(1, 1, 1);
  EXPECT_EQ(Hear(1, 2), Membership::Heard::kOther);
  EXPECT_EQ(Hear(1, 1), Membership::Heard::kOurs);
  EXPECT_EQ(membership_.Missing(), -1);
}

TEST_F(MembershipTest, AServerThatForgotItIsJoinedAgainByItselfAndServer0WithAllOfThem) {
  Welcome(0, 1, 1);
  Welcome(1, 1, 1);
  membership_.OnForgotten(1);
  EXPECT_EQ(membership_.Missing(), 1);
  EXPECT_TRUE(membership_.joined());
  EXPECT_TRUE(Welcome(1, 1, 1).joined);
  membership_.OnForgotten(0);
  EXPECT_FALSE(membership_.joined());
  EXPECT_EQ(membership_.Greeting(0, 0).header.hello().since(), 0u) << "it has nothing";
  EXPECT_TRUE(Welcome(0, 1, 1).anew);
  EXPECT_EQ(membership_.Missing(), 1);
}

TEST_F(MembershipTest, GreetingsAreDueUntilTheServerWelcomesIt) {
  EXPECT_THAT(membership_.Tick(0).greetings, ElementsAre(0)) << "the others come after it";
  (void)membership_.Greeting(0, 0);
  EXPECT_EQ(membership_.NextDeadline(), 500 * kMillisecond);
  EXPECT_THAT(membership_.Tick(kMillisecond).greetings, IsEmpty());
  EXPECT_THAT(membership_.Tick(kSecond).greetings, ElementsAre(0));
  Welcome(0, 1, 1);
  const Membership::Due due = membership_.Tick(kSecond);
  EXPECT_THAT(due.greetings, ElementsAre(1));
  EXPECT_TRUE(due.heartbeats);
  EXPECT_FALSE(membership_.Tick(kSecond).heartbeats);
}

// suspect_after_s is 10.
TEST_F(MembershipTest, WhoeverWasHeldUpBlamesNobodyForSilence) {
  Welcome(0, 1, 1);
  Welcome(1, 1, 1);
  (void)membership_.Tick(30 * kSecond);  // after 30 s without a tick
  EXPECT_THAT(membership_.Unheard(), IsEmpty());
  for (TimeUs now = 31; now <= 41; ++now) {
    Hear(0, 1, now * kSecond);
    (void)membership_.Tick(now * kSecond);
  }
  EXPECT_THAT(membership_.Unheard(), ElementsAre(1));
  Hear(1, 1, 42 * kSecond);
  EXPECT_THAT(membership_.Unheard(), IsEmpty());
}

TEST_F(MembershipTest, AServerThatStaysSilentIsNamed) {
  EXPECT_EQ(membership_.Tick(61 * kSecond).lost, "server 0 at ipc://a does not answer since 61 s");
}

}  // namespace
}  // namespace kumo
