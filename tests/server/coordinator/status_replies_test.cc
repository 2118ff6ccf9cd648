#include "server/coordinator/status_replies.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/server/coordinator/coordinator_harness.h"

namespace kumo {
namespace {

using test::Fleet;
using test::SmallJob;

wire::JobStatus Asked(Fleet* fleet, const PeerName& by) {
  wire::Header header;
  header.set_type(wire::STATUS);
  StepContext context{fleet->now, {}};
  EXPECT_TRUE(fleet->coordinator->OnMessage(by, header, &context).ok());
  EXPECT_EQ(context.actions.size(), 1u);
  const auto& send = std::get<SendAction>(context.actions.at(0));
  EXPECT_EQ(send.to, by);
  EXPECT_EQ(send.message.header.type(), wire::STATUS_REPLY);
  return send.message.header.job_status();
}

TEST(StatusRepliesTest, AStatusIsMadeOnceInAWhileHoweverManyAsk) {
  Fleet fleet(SmallJob(), 1);
  EXPECT_EQ(Asked(&fleet, "client/a").workers_size(), 0);
  fleet.Join("w0");
  EXPECT_EQ(Asked(&fleet, "client/b").workers_size(), 0) << "as a had it";
  fleet.now += StatusReplies::Interval(0);
  EXPECT_EQ(Asked(&fleet, "client/a").workers_size(), 1);
}

TEST(StatusRepliesTest, TheMoreWorkersTheRarerUpToOnceASecond) {
  EXPECT_LE(StatusReplies::Interval(2), 20 * kMillisecond);
  EXPECT_EQ(StatusReplies::Interval(150), 150 * kMillisecond);
  EXPECT_EQ(StatusReplies::Interval(4096), kSecond);
}

TEST(StatusRepliesTest, WhatDoesNotFitIsLeftOutAndCounted) {
  wire::JobStatus status;
  status.set_job_name("large");
  EXPECT_EQ(Shortened(status, 1000).workers_left_out(), 0);
  for (int i = 0; i < 4096; ++i) {
    wire::JobStatus::Worker* worker = status.add_workers();
    worker->set_name("worker-" + std::to_string(i));
    worker->mutable_report()->set_state(std::string(1000, 's'));
  }
  const wire::JobStatus shown = Shortened(status, StatusReplies::kMostBytes);
  EXPECT_LE(shown.ByteSizeLong(), StatusReplies::kMostBytes);
  EXPECT_GT(shown.ByteSizeLong(), StatusReplies::kMostBytes * 9 / 10);
  EXPECT_EQ(shown.workers_size() + shown.workers_left_out(), 4096);
  EXPECT_EQ(shown.workers(0).name(), "worker-0");
  EXPECT_EQ(Shortened(shown, StatusReplies::kMostBytes).ByteSizeLong(), shown.ByteSizeLong());
}

}  // namespace
}  // namespace kumo
