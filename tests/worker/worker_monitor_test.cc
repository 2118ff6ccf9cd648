
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/worker_monitor.h"

namespace kumo {

namespace {

using testing::HasSubstr;

wire::Header Reports(wire::Type type, int64_t samples) {
  wire::Header header;
  header.set_type(type);
  header.mutable_worker_report()->set_samples(samples);
  header.mutable_worker_report()->add_partitions(4);
  header.mutable_worker_report()->set_wait_ms(20);
  return header;
}

class WorkerMonitorTest : public testing::Test {
 protected:
  HttpResponse Ask(const char* path) {
    monitor_.Publish("", {}, 0, 0);
    return view_.Answer(path);
  }

  SteadyClock clock_;
  ProcessView view_{{"kumo-worker", "worker-1", "1", "abc"}, &clock_};
  WorkerMonitor monitor_{&view_, "worker-1"};
};

TEST_F(WorkerMonitorTest, IsReadyFromItsFirstHeartbeatUntilItLeaves) {
  EXPECT_EQ(Ask("/readyz").code, 503);
  EXPECT_EQ(*Ask("/readyz").body, "waits for server 0\n");
  monitor_.See(Reports(wire::HELLO, 0));
  EXPECT_EQ(Ask("/readyz").code, 503) << "it may be refused";
  monitor_.See(Reports(wire::HEARTBEAT, 0));
  EXPECT_EQ(Ask("/readyz").code, 200);
  wire::Header push;
  push.set_type(wire::PUSH);
  monitor_.See(push);
  EXPECT_EQ(Ask("/readyz").code, 200);
  monitor_.See(Reports(wire::BYE, 0));
  EXPECT_EQ(Ask("/readyz").code, 503);
}

TEST_F(WorkerMonitorTest, ShowsWhatItReportedLast) {
  monitor_.See(Reports(wire::HEARTBEAT, 100));
  monitor_.See(Reports(wire::HEARTBEAT, 250));
  const std::string text = *Ask("/metrics").body;
  EXPECT_THAT(text, HasSubstr("kumo_worker_samples_total{worker=\"worker-1\"} 250\n"));
  EXPECT_THAT(text, HasSubstr("kumo_worker_leases{worker=\"worker-1\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("kumo_worker_round_seconds{worker=\"worker-1\",part=\"wait\"} 0.02\n"));
}

TEST_F(WorkerMonitorTest, NamesWhomItWaitsFor) {
  monitor_.Publish("server 1 at tcp://b:7700", {}, 0, 0);
  EXPECT_EQ(*view_.Answer("/readyz").body, "waits for server 1 at tcp://b:7700\n");
}

}  // namespace

}  // namespace kumo
