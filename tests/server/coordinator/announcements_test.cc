#include "server/coordinator/announcements.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/phase.h"
#include "tests/common/job/small_job.h"
#include "tests/server/coordinator/coordinator_harness.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr TimeUs kNow = 1000 * kSecond;

// A job of some servers and workers that are there.
struct Told {
  Told(int servers, int workers)
      : small(WithServers(servers)),
        job(CoordinatorStart{small.experiment, IdentityOf(small.experiment), "here"}, std::nullopt,
            kNow) {
    for (int s = 1; s < servers; ++s) {
      wire::Hello hello;
      hello.set_role(wire::Hello::SERVER);
      hello.set_server_index(s);
      job.membership.Join(ServerPeer(s), hello, kNow);
    }
    for (int w = 0; w < workers; ++w) {
      wire::Hello hello;
      hello.set_role(wire::Hello::WORKER);
      hello.set_name("w" + std::to_string(w));
      job.membership.Join(WorkerPeer(hello.name(), 1), hello, kNow);
    }
    job.plan = small.plan();
  }
  static test::Job WithServers(int servers) {
    test::Job job = test::SmallJob();
    job.experiment.sync.partitions = 7;
    for (int s = 0; s < servers; ++s) {
      job.experiment.cluster.servers.push_back("ipc://server-" + std::to_string(s));
    }
    return job;
  }
  void Train(int64_t version) {
    job.phase = JobPhase::kTraining;
    job.version = version;
    job.leasing.Begin(job.members(), version, kNow);
  }
  void Report(int server, bool ready, int missing = -1) {
    wire::Header header;
    header.mutable_server_report()->set_ready(ready);
    if (missing >= 0) {
      header.mutable_server_report()->add_missing(missing);
      header.mutable_server_report()->set_waits_for("partition " + std::to_string(missing));
    }
    StepContext context{kNow, {}};
    job.membership.OnHeartbeat(ServerPeer(server), header, &context);
  }
  std::map<PeerName, wire::Header> OrdersToAll() const {
    StepContext context{kNow, {}};
    SendOrdersToAll(job, &context);
    std::map<PeerName, wire::Header> orders;
    for (const ServerAction& action : context.actions) {
      const auto& send = std::get<SendAction>(action);
      EXPECT_EQ(send.message.header.type(), wire::HEARTBEAT_REPLY);
      EXPECT_TRUE(orders.emplace(send.to, send.message.header).second) << "twice: " << send.to;
    }
    return orders;
  }

  test::Job small;
  JobState job;
};

TEST(Announcements, EachPartitionIsOneWorkersAndServersAreToldWhose) {
  for (const int workers : {1, 2, 3, 7, 9}) {
    Told told(3, workers);
    told.Train(5);
    const auto orders = told.OrdersToAll();
    EXPECT_EQ(orders.size(), 2u + workers);
    std::map<int, PeerName> owners;
    for (const auto& [peer, header] : orders) {
      EXPECT_EQ(header.round(), 5);
      for (const auto& lease : header.orders().leases()) {
        EXPECT_EQ(lease.from(), 5);
        EXPECT_TRUE(owners.emplace(lease.partition(), peer).second) << lease.partition();
      }
    }
    ASSERT_EQ(owners.size(), 7u);
    for (const int server : {1, 2}) {
      const wire::Orders& said = orders.at(ServerPeer(server)).orders();
      EXPECT_TRUE(said.leases().empty());
      const LeaseTable table = LeaseTable::FromWire(said.lease_table());
      for (const auto& [partition, owner] : owners) {
        EXPECT_EQ(table.leases()[partition].worker, owner);
      }
    }
  }
}

TEST(Announcements, BeforeAndAfterTheTrainingNobodyHasALease) {
  Told told(2, 2);
  told.Train(0);
  for (const JobPhase phase : {JobPhase::kWaiting, JobPhase::kFinished, JobPhase::kFailed}) {
    told.job.phase = phase;
    if (phase == JobPhase::kFailed) told.job.shutdown.OnFailed(Unavailable("the disk is full"));
    for (const auto& [peer, header] : told.OrdersToAll()) {
      EXPECT_TRUE(header.orders().leases().empty());
      EXPECT_FALSE(header.orders().has_lease_table());
      EXPECT_EQ(header.orders().finished(), phase == JobPhase::kFinished);
      EXPECT_EQ(header.refusal().reason(), phase == JobPhase::kFailed ? "the disk is full" : "");
    }
  }
}

// Who has leases goes on with them.
TEST(Announcements, AsLongAsClaimsAreCollectedThereAreNoOrders) {
  Told told(2, 2);
  told.Train(3);
  told.job.leasing.AskForClaims(kNow + kSecond);
  const auto replies = told.OrdersToAll();
  EXPECT_EQ(replies.size(), 3u);
  for (const auto& [peer, header] : replies) EXPECT_FALSE(header.has_orders());
}

TEST(Announcements, WhomTheJobWaitsForAreProcessesFirstAndThenPartitions) {
  Told told(2, 1);
  told.job.membership.Join(WorkerPeer("w0", 1), {}, kNow);
  told.Report(0, true);
  told.Report(1, false);
  EXPECT_THAT(WaitsFor(told.job, kNow), HasSubstr("server 1"));
  EXPECT_EQ(WaitsFor(told.job, kNow), WaitsForProcesses(told.job, kNow));
  told.Report(1, true, /*missing=*/4);
  told.Train(0);
  EXPECT_EQ(WaitsForProcesses(told.job, kNow), "");
  EXPECT_THAT(WaitsFor(told.job, kNow), HasSubstr("partition 4 ("));
}

// In each open round the job waits for partitions.
TEST(Announcements, AStatusNamesPartitionsOnlyIfTheyAreLate) {
  Told told(2, 1);
  told.Report(0, true, /*missing=*/4);
  told.Report(1, true, /*missing=*/4);
  told.Train(0);
  told.job.clock.Moved(kNow);
  const auto says = [&](TimeUs time) {
    const wire::JobStatus status = StatusOf(told.job, time);
    const bool late = IsLate(told.job, time);
    EXPECT_EQ(status.waits_for().starts_with("partition 4 ("), late);
    EXPECT_EQ(status.servers(1).report().waits_for(), late ? "partition 4" : "");
    return late;
  };
  EXPECT_FALSE(says(kNow + 29 * kSecond)) << "the first round may be long";
  EXPECT_TRUE(says(kNow + 31 * kSecond));
  for (int round = 1; round < 10; ++round) told.job.clock.OnClosed(kNow + round * 2 * kSecond);
  const TimeUs closed = kNow + 18 * kSecond;
  EXPECT_FALSE(says(closed + 3 * kSecond));
  EXPECT_TRUE(says(closed + 5 * kSecond)) << "twice the usual time is over";
}

TEST(Announcements, AStatusIsOfThePhaseAndOfAllMembers) {
  const std::pair<JobPhase, const char*> phases[] = {{JobPhase::kWaiting, "waiting"},
                                                     {JobPhase::kTraining, "training"},
                                                     {JobPhase::kFinished, "finished"},
                                                     {JobPhase::kFailed, "failed"}};
  Told told(3, 4);
  told.Train(2);
  for (const auto& [phase, name] : phases) {
    told.job.phase = phase;
    const wire::JobStatus status = StatusOf(told.job, kNow);
    EXPECT_EQ(status.phase(), name);
    EXPECT_EQ(status.round(), 2);
    EXPECT_EQ(status.job_name(), "small");
    EXPECT_EQ(status.workers_size(), 4);
    EXPECT_EQ(status.servers_size(), 3);
    EXPECT_TRUE(status.waits_for().empty() || !IsOver(phase));
    std::set<int> partitions;
    for (const auto& worker : status.workers()) {
      partitions.insert(worker.report().partitions().begin(), worker.report().partitions().end());
    }
    EXPECT_EQ(partitions.size(), 7u);
  }
}

TEST(Announcements, ASuccessorIsToldWhatTheRoundThatStartsIsToDo) {
  Told told(2, 1);
  told.Train(6);
  const auto nothing = SuccessorsState(told.job, kNow);
  EXPECT_EQ(nothing->save_at_size(), 0);
  EXPECT_EQ(nothing->move_at(), -1);
  EXPECT_EQ(nothing->stop_at(), -1);
  EXPECT_FALSE(nothing->has_origin());
  told.job.saving.TakeOver({7});
  told.job.leasing.TakeOver(6, /*move_at=*/7, *told.job.plan, kNow);
  const auto state = SuccessorsState(told.job, kNow);
  ASSERT_EQ(state->save_at_size(), 1);
  EXPECT_EQ(state->save_at(0), 7);
  EXPECT_EQ(state->move_at(), 7);
}

using test::Fleet;
using test::SmallJob;

wire::JobStatus StatusAskedBy(Fleet* fleet, const PeerName& by) {
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
  EXPECT_EQ(StatusAskedBy(&fleet, "client/a").workers_size(), 0);
  fleet.Join("w0");
  EXPECT_EQ(StatusAskedBy(&fleet, "client/b").workers_size(), 0) << "as a had it";
  fleet.now += StatusReplies::Interval(0);
  EXPECT_EQ(StatusAskedBy(&fleet, "client/a").workers_size(), 1);
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
