#include "worker/session/session.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/protocol.h"
#include "tests/worker/session/session_harness.h"

namespace kumo {
namespace {

using test::SayGone;
using test::Script;
using test::SmallSettings;
using testing::HasSubstr;

// --- Joining.

TEST(Session, JoinsServer0FirstAndThenTheOthers) {
  Script script(SmallSettings(3));
  script.Tick();
  ASSERT_EQ(script.sent.size(), 1u);
  EXPECT_EQ(script.sent[0].server, 0);
  const wire::Header& header = script.sent[0].message.header;
  EXPECT_EQ(header.type(), wire::HELLO);
  EXPECT_EQ(header.protocol(), kProtocolVersion);
  const SessionSettings settings = SmallSettings(3);
  EXPECT_TRUE(CheckHello(header, settings.identity, settings.spec).ok());
  script.sent.clear();
  script.Welcome(0);
  std::set<int> greeted;
  for (const auto& send : script.sent) {
    if (send.message.header.type() == wire::HELLO) greeted.insert(send.server);
  }
  EXPECT_EQ(greeted, (std::set<int>{1, 2}));
  script.Order({{1, 0}});
  EXPECT_EQ(script.CountSent(wire::PULL), 0);  // not before all are joined
  script.Welcome(2);
  script.Welcome(1);
  EXPECT_EQ(script.CountSent(wire::PULL), static_cast<int>(script.map().chunks().size()));
}

TEST(Session, SaysWhomItWaitsFor) {
  Script script(SmallSettings(2));
  EXPECT_EQ(script.session().WaitsForProcesses(), "server 0 at ipc://somewhere");
  script.Tick();
  script.Welcome(0);
  EXPECT_EQ(script.session().WaitsForProcesses(), "server 1 at ipc://somewhere");
  script.Welcome(1);
  EXPECT_EQ(script.session().WaitsForProcesses(), "");
  wire::Header orders;
  orders.set_type(wire::HEARTBEAT_REPLY);
  orders.mutable_orders()->set_waits_for("1 of 2 workers");
  script.ReceiveHeader(0, orders);
  EXPECT_EQ(script.session().WaitsForProcesses(), "the job, which waits for 1 of 2 workers");
  EXPECT_EQ(script.session().StateInWords(), "waits for the job, which waits for 1 of 2 workers");
  script.Order({{1, 0}});
  EXPECT_EQ(script.session().WaitsForProcesses(), "");
}

TEST(Session, RepeatsItsHelloAndGivesUpInTheEnd) {
  Script script;
  script.Tick();
  for (int i = 0; i < 5; ++i) script.Tick(kSecond);
  EXPECT_EQ(script.CountSent(wire::HELLO), 6);
  script.Tick(60 * kSecond);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
  EXPECT_THAT(script.left->message(), HasSubstr("ipc://somewhere"));
}

// --- Ends.

TEST(Session, ARefusalEndsItUnlessItIsAQuestionOfTime) {
  const auto after = [](StatusCode code) {
    Script script;
    script.Join();
    wire::Header header;
    header.set_type(wire::REFUSED);
    header.mutable_refusal()->set_code(static_cast<uint32_t>(code));
    header.mutable_refusal()->set_reason("because");
    script.sent.clear();
    script.ReceiveHeader(0, header);
    if (script.left) {
      EXPECT_THAT(script.left->message(), HasSubstr("because"));
      EXPECT_EQ(script.CountSent(wire::BYE), 1) << "the coordinator hears why";
    }
    return script.left;
  };
  EXPECT_FALSE(after(StatusCode::kAborted));
  ASSERT_TRUE(after(StatusCode::kFailedPrecondition));
  EXPECT_EQ(after(StatusCode::kFailedPrecondition)->code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(after(StatusCode::kInvalidArgument)->code(), StatusCode::kInternal);
  EXPECT_EQ(after(StatusCode::kResourceExhausted)->code(), StatusCode::kResourceExhausted);
}

TEST(Session, ARefusalWithoutACodeIsNotSuccess) {
  for (const wire::Type type : {wire::REFUSED, wire::HEARTBEAT_REPLY}) {
    Script script;
    script.Join();
    wire::Header header;
    header.set_type(type);
    header.mutable_refusal()->set_reason("because");
    script.ReceiveHeader(0, header);
    EXPECT_FALSE(script.left && script.left->ok()) << type;
  }
}

TEST(Session, AFailedJobEndsItWithTheJobsStatus) {
  Script script;
  script.Join();
  wire::Header header;
  header.set_type(wire::HEARTBEAT_REPLY);
  header.mutable_refusal()->set_code(static_cast<uint32_t>(StatusCode::kDataLoss));
  header.mutable_refusal()->set_reason("server 1: damaged");
  script.ReceiveHeader(0, header);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kDataLoss);
}

TEST(Session, AServerThatStaysSilentEndsIt) {
  Script script(SmallSettings(2));
  script.Join();
  for (int second = 0; second < 610 && !script.left; ++second) {
    EXPECT_TRUE(!script.left || second > 590) << "it may be started again";
    wire::Header alive;
    alive.set_type(wire::HEARTBEAT_REPLY);
    script.ReceiveHeader(0, alive);
    script.Tick(kSecond);
  }
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
  EXPECT_THAT(script.left->message(), HasSubstr("server 1"));
}

TEST(Session, ABlockThatCannotBeComputedIsToldToTheCoordinator) {
  Script script;
  script.Join();
  script.sent.clear();
  script.Take(script.session().OnFailed(FailedPrecondition("fc is infinite"), 0));
  ASSERT_EQ(script.CountSent(wire::BYE), 1);
  const wire::WorkerReport& report = script.sent.front().message.header.worker_report();
  EXPECT_EQ(report.failure(), "fc is infinite");
  EXPECT_EQ(report.failure_code(), static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kFailedPrecondition);
  script.sent.clear();
  script.Tick(kSecond);
  script.Order({{0, 0}});
  EXPECT_TRUE(script.sent.empty());  // it has left
}

// --- Told to leave.

TEST(Session, ToldToLeaveItGoesOnUntilItsLeasesHaveMovedAndAllIsAcknowledged) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.Join();
  script.save_at = {1};
  script.move_at = 1;
  script.Order({{1, 0}});
  script.Run(0);
  script.sent.clear();
  script.Take(script.session().Leave(script.now));
  ASSERT_EQ(script.CountSent(wire::HEARTBEAT), 1);  // at once
  EXPECT_TRUE(script.sent.back().message.header.worker_report().leaving());
  EXPECT_FALSE(script.left);
  script.Tick(6 * kSecond);  // asks for version 1 again
  script.Run(1);
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{1, 1}));
  EXPECT_FALSE(script.left);
  script.sent.clear();
  script.Order({}, 2, /*released=*/true);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
  ASSERT_EQ(script.CountSent(wire::BYE), 1);
  EXPECT_TRUE(script.sent.back().message.header.worker_report().handed_over());
}

TEST(Session, WithoutALeaseItLeavesAsSoonAsItIsReleased) {
  Script script;
  script.Join();
  script.Take(script.session().Leave(script.now));
  EXPECT_FALSE(script.left);
  script.Order({}, 0, /*released=*/true);
  EXPECT_TRUE(script.left);
  EXPECT_TRUE(script.handed_over);
}

TEST(Session, WhatIsNotAcknowledgedKeepsALeavingWorker) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  while (script.trained.empty() || script.train) {  // pushes, and nobody answers
    if (script.Work()) continue;
    ASSERT_FALSE(script.sent.empty());
    const auto send = script.sent.front();
    script.sent.pop_front();
    script.Answer(send);
  }
  ASSERT_GT(script.CountSent(wire::PUSH), 0);
  script.Take(script.session().Leave(script.now));
  script.Order({}, 1, /*released=*/true);
  EXPECT_FALSE(script.left);
  script.Run();
  EXPECT_TRUE(script.left);
}

// Of what is open then nothing counts any more: whether it may go, the coordinator says anew.
TEST(Session, AReleaseIsForgottenWithTheMembershipThatItWasGivenIn) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.RunUntilItTrains();
  script.HandOn({1});
  script.Take(script.session().Leave(script.now));
  script.Order({}, 0, /*released=*/true);
  ASSERT_FALSE(script.left) << "it has something to push";
  SayGone(&script);
  EXPECT_FALSE(script.left);
  script.Welcome(0);
  EXPECT_FALSE(script.left);
  script.Order({}, 0, /*released=*/true);
  EXPECT_TRUE(script.left);
}

TEST(Session, AskedTwiceOrTooLateItLeavesAsItIs) {
  for (const bool twice : {false, true}) {
    Script script;
    script.Join();
    script.Order({{1, 0}});
    script.Take(script.session().Leave(script.now));
    script.Take(script.session().Leave(script.now + 1));  // the same request
    EXPECT_FALSE(script.left);
    script.sent.clear();
    if (twice) {
      script.Take(script.session().Leave(script.now + kSecond));
    } else {
      script.Tick(26 * kSecond);  // checkpoint.grace_s is over
    }
    ASSERT_TRUE(script.left);
    ASSERT_EQ(script.CountSent(wire::BYE), 1);
    EXPECT_FALSE(script.sent.back().message.header.worker_report().handed_over());
    EXPECT_FALSE(script.handed_over);
  }
}

TEST(Session, BeforeItHasJoinedItLeavesWithoutALoss) {
  Script script;
  script.Take(script.session().Leave(script.now));
  ASSERT_TRUE(script.left);
  EXPECT_TRUE(script.handed_over);
}

TEST(Session, WhileItJoinsANewGenerationItDoesNotLeaveWithoutALoss) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.Run(0);
  script.generation = 2;
  wire::Header news;
  news.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(0, news);
  script.Take(script.session().Leave(script.now));
  ASSERT_TRUE(script.left);
  EXPECT_FALSE(script.handed_over);
}

// --- States that are lost.

// Keeps the warnings that are logged while it lives.
struct SessionWarnings : google::LogSink {
  SessionWarnings() { google::AddLogSink(this); }
  ~SessionWarnings() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* text, size_t length) override {
    if (severity == google::GLOG_WARNING) texts.emplace_back(text, length);
  }
  std::vector<std::string> texts;
};

TEST(Session, AStateThatWasLostWithAWorkerIsAWarningOnce) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  for (const bool lost : {true, false}) {
    Script script(settings);
    script.Join();
    const SessionWarnings warnings;
    script.Order({{1, 2}, {2, 2}}, 2);
    script.keeps_states = !lost;
    script.Run(2);
    std::vector<std::string> of_states;
    for (const std::string& text : warnings.texts) {
      if (text.find("carried state") != std::string::npos) of_states.push_back(text);
    }
    if (lost) {
      EXPECT_THAT(of_states, testing::ElementsAre(HasSubstr("partition 1 begins round 2 without"),
                                                  HasSubstr("partition 2 begins round 2 without")));
    } else {
      EXPECT_THAT(of_states, testing::IsEmpty());
    }
  }
}

// --- Servers that no longer know it.

TEST(Session, AServerThatDoesNotKnowItIsJoinedAgain) {
  Script script;
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.Run(0);
  script.sent.clear();
  SayGone(&script);
  EXPECT_THAT(script.dropped, testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(script.CountSent(wire::HELLO), 1);
  script.Welcome(0);
  script.Order({{2, 1}});
  script.Run(1);
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{1, 2}));
}

TEST(Session, WordOfANewGenerationMakesItJoinThat) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}});
  script.Run(0);
  script.generation = 2;
  script.sent.clear();
  wire::Header orders;
  orders.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(1, orders);
  EXPECT_TRUE(script.dropped.empty());  // only server 0 knows
  script.ReceiveHeader(0, orders);
  EXPECT_TRUE(script.dropped.empty());  // it may go on with what it has
  EXPECT_EQ(script.CountSent(wire::HELLO), 1);
  script.generation = 1;
  script.Welcome(0);  // late
  script.Order({{1, 0}});
  EXPECT_EQ(script.session().StateInWords(), "waits for server 0 at ipc://somewhere");
  script.generation = 2;
  script.Welcome(0);
  EXPECT_THAT(script.dropped, testing::ElementsAre(1));
  script.Welcome(1);
  script.Order({{1, 0}});
  script.Run(0);
  EXPECT_EQ(script.trained.size(), 2u);
}

// Another server than 0 says it: what the partitions carry is still here.
TEST(Session, AServerThatForgotItIsJoinedAgainAndAskedForWhatIsOpen) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}});
  script.Run(0);
  script.sent.clear();
  wire::Header gone;
  gone.set_type(wire::GONE);
  script.ReceiveHeader(1, gone);
  EXPECT_TRUE(script.dropped.empty());
  ASSERT_EQ(script.CountSent(wire::HELLO), 1);
  script.sent.clear();
  script.Welcome(1);
  EXPECT_GT(script.CountSent(wire::PULL), 0);
}

// A server was started again, and what it held was kept twice: nobody goes back.
TEST(Session, InAGenerationThatGoesOnItKeepsWhatItHas) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.Run(0);
  ASSERT_EQ(script.trained.size(), 2u);
  script.sent.clear();
  script.generation = 2;
  script.since = 1;
  wire::Header told;
  told.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(0, told);
  ASSERT_EQ(script.CountSent(wire::HELLO), 1);
  const wire::Hello& hello = script.sent.front().message.header.hello();
  EXPECT_EQ(hello.since(), 1u);
  ASSERT_EQ(hello.claims_size(), 2);
  EXPECT_EQ(hello.claims(0).partition(), 1);
  EXPECT_EQ(hello.claims(0).round(), 1);
  script.Welcome(0);
  EXPECT_TRUE(script.dropped.empty());
  const int64_t asked = script.CountSent(wire::PULL);
  EXPECT_GT(asked, 0);  // what is open on server 0
  script.Welcome(1);
  EXPECT_GT(script.CountSent(wire::PULL), asked);
  EXPECT_EQ(script.CountSent(wire::PUSH), 0);  // acknowledged
  script.Order({{1, 0}, {2, 0}}, 1);
  script.Run(1);
  EXPECT_EQ(script.trained.size(), 4u);
}

// An acknowledgement may say that the contribution would be lost with the server.
TEST(Session, ContributionsThatAreHeldAreSentAgainToWhoeverTakesTheServersPlace) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}});
  script.held = {wire::PUSH};
  script.Run(0);
  ASSERT_EQ(script.trained.size(), 1u);
  wire::Header gone;
  gone.set_type(wire::GONE);
  const auto pushes_after_rejoining = [&] {
    script.sent.clear();
    script.ReceiveHeader(1, gone);
    script.Welcome(1);
    return script.CountSent(wire::PUSH);
  };
  const int64_t chunks = pushes_after_rejoining();
  EXPECT_GT(chunks, 0);
  EXPECT_EQ(script.session().StateInWords().find("acknowledgements"), std::string::npos);
  script.held.clear();  // the round has closed
  // It is released by its number alone: no other does it.
  const auto held = std::exchange(script.sent, {});
  for (SendToServerAction send : held) {
    if (send.message.header.type() != wire::PUSH) continue;
    send.message.header.set_request(send.message.header.request() + 1'000'000);
    script.Answer(send);
  }
  EXPECT_EQ(pushes_after_rejoining(), chunks);
  for (const auto& send : std::exchange(script.sent, {})) {
    if (send.message.header.type() == wire::PUSH) script.Answer(send);
  }
  EXPECT_EQ(pushes_after_rejoining(), 0);
}

// One of 95,000 simulated jobs waited for ever for an evaluation: the next epoch's took its place
// while it was held, and then server 0 died.
TEST(Session, AnEvaluationThatIsHeldIsKeptBesideThatOfTheNextEpoch) {
  Script script;
  script.held = {wire::EVALUATED};
  script.Join();
  script.Order({{0, 0}, {1, 0}});
  script.Run();
  const std::vector<std::pair<int64_t, int>> both = {{4, 0}, {4, 1}, {8, 0}, {8, 1}};
  ASSERT_EQ(script.evaluated, both);
  script.generation = 2;
  script.since = 1;
  wire::Header told;
  told.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(0, told);
  script.sent.clear();
  script.Welcome(0);
  std::vector<std::pair<int64_t, int>> again;
  for (const auto& send : script.sent) {
    const wire::Header& header = send.message.header;
    if (header.type() == wire::EVALUATED) again.emplace_back(header.round(), header.partition());
  }
  std::sort(again.begin(), again.end());
  EXPECT_EQ(again, both);
  // The older ones are done with last: what was evaluated after them is not evaluated again.
  script.held.clear();
  const auto asked = std::exchange(script.sent, {});
  for (const int64_t version : {8, 4}) {
    for (const auto& send : asked) {
      if (send.message.header.round() == version) script.Answer(send);
    }
  }
  script.Run();
  EXPECT_EQ(script.evaluated, both);
}

TEST(Session, AnotherGenerationHasOtherWeights) {
  // The servers were started again from a checkpoint; their version 0 is not the one that is
  // installed, and the block that is being computed is of a past that was given up.
  Script script;
  script.Join();
  script.Order({{1, 0}});
  while (!script.train) {
    ASSERT_FALSE(script.sent.empty());
    const auto send = script.sent.front();
    script.sent.pop_front();
    script.Answer(send);
  }
  SayGone(&script);
  script.generation = 2;
  script.sent.clear();
  script.Tick(kMillisecond);
  script.Welcome(0);
  script.Order({{1, 0}});
  script.sent.clear();
  script.installs.clear();
  ASSERT_TRUE(script.Work());  // the old block ends
  EXPECT_EQ(script.CountSent(wire::PUSH), 0) << "a block of generation 1 is pushed in generation 2";
  EXPECT_FALSE(script.train) << "trains from weights of generation 1";
  script.Run(0);
  EXPECT_EQ(script.installs.size(), script.map().chunks().size());
}

TEST(Session, AStopOfAnotherGenerationIsForgotten) {
  Script script;
  script.stop_at = 0;
  script.Join();
  script.Order({{1, 0}});
  script.Run();
  EXPECT_EQ(script.trained.size(), 1u);  // halted at version 1
  SayGone(&script);
  script.generation = 2;
  script.start_version = 1;
  script.stop_at = -1;
  script.sent.clear();
  script.Tick(kMillisecond);
  script.Welcome(0);
  script.Order({{1, 1}});
  script.Run(1);
  ASSERT_EQ(script.trained.size(), 2u);
  EXPECT_EQ(script.trained[1], (std::pair<int64_t, int>{1, 1}));
}

TEST(Session, MessagesOfOtherJobsAndGenerationsAreIgnored) {
  Script script;
  script.Join();
  Message orders;
  orders.header.set_type(wire::HEARTBEAT_REPLY);
  orders.header.mutable_orders()->set_finished(true);
  orders.header.set_generation(1);
  orders.header.set_job(SmallSettings().identity.JobId() + 1);
  script.Take(script.session().OnMessage(0, orders, 0));
  EXPECT_FALSE(script.left);
  orders.header.set_job(SmallSettings().identity.JobId());
  orders.header.set_generation(7);
  script.Take(script.session().OnMessage(0, orders, 0));
  EXPECT_FALSE(script.left);
}

}  // namespace
}  // namespace kumo
