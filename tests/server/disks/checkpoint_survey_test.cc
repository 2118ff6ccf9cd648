#include "server/disks/checkpoint_survey.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/protocol.h"
#include "tests/server/node/server_node_harness.h"

namespace kumo {
namespace {

using testing::HasSubstr;

struct SurveyedJob {
  explicit SurveyedJob(int servers, int64_t newer_than = -1) : job(test::JobOn(servers)) {
    settings.identity = IdentityOf(job.experiment);
    settings.newer_than = newer_than;
    survey.emplace(settings, 0);
  }
  std::vector<SendAction> Hello(int server, uint32_t since = 0, bool replica = false) {
    Message message;
    message.header.set_type(wire::HELLO);
    wire::Hello* hello = message.header.mutable_hello();
    *hello = HelloOf(settings.identity, {});
    hello->set_role(wire::Hello::SERVER);
    hello->set_server_index(server);
    hello->set_since(since);
    hello->set_holds_replica(replica);
    return test::Sends(
        survey->OnMessage(ServerPeer(server), test::Stamped(job, message, 0), kSecond));
  }
  std::vector<SendAction> Holds(int server, int64_t version, const std::vector<int>& files,
                                uint32_t generation = 3) {
    Message message;
    message.header.set_type(wire::CHECKPOINTS);
    wire::HeldCheckpoints* held = message.header.mutable_held_checkpoints();
    held->set_generation(generation);
    if (version >= 0) {
      auto* one = held->add_checkpoints();
      one->set_version(version);
      one->set_generation(1);
      for (const int file : files) one->add_files(file);
    }
    return test::Sends(survey->OnMessage(ServerPeer(server), test::Stamped(job, message), kSecond));
  }

  test::Job job;
  SurveySettings settings;
  std::optional<CheckpointSurvey> survey;
};

TEST(CheckpointSurvey, OfOneServerIsOver) { EXPECT_TRUE(SurveyedJob(1).survey->outcome()->ok()); }

TEST(CheckpointSurvey, AsksEachServerThatSaysHelloAndNoWorker) {
  SurveyedJob job(3);
  const auto asked = job.Hello(1);
  ASSERT_NE(test::Find(asked, wire::LIST_CHECKPOINTS), nullptr);
  EXPECT_EQ(asked[0].to, ServerPeer(1));
  EXPECT_EQ(asked[0].message.header.job(), job.settings.identity.JobId());
  EXPECT_TRUE(test::Sends(job.survey->OnMessage(WorkerPeer("worker-0", 1),
                                                test::WorkerHello(job.job, "worker-0"), 0))
                  .empty());
  EXPECT_EQ(job.survey->WaitsFor(), "server 1, 2");
}

// Who was in the job that this process's predecessor had says hello when its generation is gone.
TEST(CheckpointSurvey, WhoTakesPartInAJobIsToldToJoinAgain) {
  SurveyedJob job(2);
  const auto sends = test::Sends(job.survey->OnMessage(
      ServerPeer(1), test::Stamped(job.job, test::Plain(job.job, wire::HEARTBEAT), 6), 0));
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].message.header.type(), wire::GONE);
  EXPECT_EQ(sends[0].message.header.generation(), 6u);
}

TEST(CheckpointSurvey, AnswersWhoAsksForTheStatus) {
  SurveyedJob job(2);
  const auto sends = test::Sends(
      job.survey->OnMessage("client/1", test::Stamped(0, test::Plain(job.job, wire::STATUS)), 0));
  const SendAction* reply = test::Find(sends, wire::STATUS_REPLY);
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->to, "client/1");
  EXPECT_EQ(reply->message.header.job_status().phase(), "waiting");
  EXPECT_EQ(reply->message.header.job_status().waits_for(), "server 1");
}

TEST(CheckpointSurvey, WhereNobodyHasAnythingTheJobBegins) {
  SurveyedJob job(3);
  for (const int server : {1, 2}) {
    job.Hello(server);
    EXPECT_FALSE(job.survey->outcome());
    job.Holds(server, -1, {}, 0);
  }
  ASSERT_TRUE(job.survey->outcome());
  EXPECT_TRUE(job.survey->outcome()->ok());
  EXPECT_EQ(job.survey->generation(), 0u);
}

TEST(CheckpointSurvey, FetchesTheNewestManifestAndLearnsTheGeneration) {
  SurveyedJob job(3);
  for (const int server : {1, 2}) job.Hello(server);
  job.Holds(1, 12, {0, 1}, 5);
  const auto sends = job.Holds(2, 9, {2}, 4);
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].to, ServerPeer(1));
  EXPECT_EQ(sends[0].message.header.file_piece().version(), 12);
  EXPECT_EQ(sends[0].message.header.file_piece().shard(), -1);
  EXPECT_GT(job.survey->generation(), 5u);
}

TEST(CheckpointSurvey, WhatIsNotNewerThanItsOwnIsNotWanted) {
  SurveyedJob job(2, 12);
  job.Hello(1);
  EXPECT_TRUE(job.Holds(1, 12, {0, 1}).empty());
  EXPECT_TRUE(job.survey->outcome()->ok());
}

TEST(CheckpointSurvey, WhoAnswersNothingIsNamedAfterALimit) {
  SurveyedJob job(3);
  job.Hello(1);
  job.Holds(1, -1, {});
  (void)job.survey->Tick(60 * kSecond);
  EXPECT_FALSE(job.survey->outcome());  // it counts from the last answer
  (void)job.survey->Tick(62 * kSecond);
  ASSERT_TRUE(job.survey->outcome());
  EXPECT_EQ(job.survey->outcome()->code(), StatusCode::kUnavailable);
  EXPECT_THAT(job.survey->outcome()->message(), HasSubstr("server 2"));
}

TEST(CheckpointSurvey, AnotherJobsServerIsRefused) {
  SurveyedJob job(2);
  SurveyedJob other(3);
  Message message;
  message.header.set_type(wire::HELLO);
  *message.header.mutable_hello() = HelloOf(other.settings.identity, {});
  const auto sends =
      test::Sends(job.survey->OnMessage(ServerPeer(1), test::Stamped(other.job, message, 0), 0));
  ASSERT_NE(test::Find(sends, wire::REFUSED), nullptr);
}

// Nothing that it says comes to more than a few entries, and none of it is believed unseen.
TEST(CheckpointSurvey, HostileListsAreOfNoUse) {
  SurveyedJob job(2);
  EXPECT_TRUE(job.Holds(1, 12, {0}).empty());  // before its hello
  job.Hello(1);
  const auto sends = job.Holds(1, -5, {-1, 1 << 30}, 0xffffffff);
  EXPECT_TRUE(sends.empty());
  ASSERT_TRUE(job.survey->outcome());
  EXPECT_EQ(job.survey->generation(), 0u);
}

}  // namespace
}  // namespace kumo
