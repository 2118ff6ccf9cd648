#include "common/job/http/process_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;
using testing::Not;

class HandClock : public Clock {
 public:
  TimeUs NowUs() const override { return now; }
  TimeUs now = 0;
};

ProcessSnapshot OfServer0() {
  ProcessSnapshot snapshot;
  snapshot.ready = true;
  snapshot.job.emplace();
  snapshot.job->set_job_name("lenet");
  snapshot.job->set_phase("training");
  snapshot.job->set_round(812);
  snapshot.history = std::make_shared<const RunHistory>();
  return snapshot;
}

TEST(ProcessView, AHealthyLoopTurns) {
  HandClock clock;
  ProcessView view({"kumo-server", "server-0", "1", "abc"}, &clock);
  EXPECT_EQ(view.Answer("/healthz").code, 200) << "it starts";
  view.Turned(0);
  clock.now = ProcessView::kStuckAfter - 1;
  EXPECT_EQ(view.Answer("/healthz").code, 200);
  clock.now = ProcessView::kStuckAfter;
  EXPECT_EQ(view.Answer("/healthz").code, 503);
  EXPECT_THAT(*view.Answer("/healthz").body, HasSubstr("has not turned for 30 s"));
  view.Turned(clock.now);
  EXPECT_EQ(view.Answer("/healthz").code, 200);
}

TEST(ProcessView, IsReadyWhenItSaysSoAndElseNamesWhatItWaitsFor) {
  HandClock clock;
  ProcessView view({"kumo-server", "server-1", "1", "abc"}, &clock);
  EXPECT_EQ(view.Answer("/readyz").code, 503);
  ProcessSnapshot snapshot;
  snapshot.waits_for = "server 0";
  view.Publish(snapshot, 0);
  EXPECT_EQ(view.Answer("/readyz").code, 503);
  EXPECT_EQ(*view.Answer("/readyz").body, "waits for server 0\n");
  snapshot.ready = true;
  view.Publish(snapshot, 0);
  EXPECT_EQ(view.Answer("/readyz").code, 200);
}

TEST(ProcessView, OnlyServer0ShowsTheJob) {
  HandClock clock;
  ProcessView worker({"kumo-worker", "worker-0", "1", "abc"}, &clock);
  for (const char* path : {"/", "/page.js", "/status.json", "/history.json"}) {
    EXPECT_EQ(worker.Answer(path).code, 404) << path;
  }
  ProcessView server({"kumo-server", "server-0", "1", "abc"}, &clock);
  EXPECT_EQ(server.Answer("/status.json").code, 503) << "there is nothing yet";
  server.Publish(OfServer0(), 0);
  for (const char* path :
       {"/", "/page.js", "/page.css", "/chart.js", "/status.json", "/history.json", "/metrics"}) {
    EXPECT_EQ(server.Answer(path).code, 200) << path;
  }
  EXPECT_THAT(*server.Answer("/status.json").body, HasSubstr("\"round\":812"));
  for (const char* path : {"", "/../etc/passwd", "/page.js/", "//", "/%2e%2e/", "/status.json?a"}) {
    EXPECT_EQ(server.Answer(path).code, 404) << path;
  }
}

TEST(ProcessView, ATextIsMadeOnceASnapshotAndASecond) {
  HandClock clock;
  ProcessView view({"kumo-server", "server-0", "1", "abc"}, &clock);
  view.Publish(OfServer0(), 0);
  const auto first = view.Answer("/metrics").body;
  EXPECT_EQ(view.Answer("/metrics").body, first);
  view.Publish(OfServer0(), 0);
  EXPECT_NE(view.Answer("/metrics").body, first);
}

TEST(Metrics, NamesAndLabels) {
  ProcessSnapshot snapshot = OfServer0();
  snapshot.traffic.Sent(wire::CHUNK, 100);
  auto* worker = snapshot.job->add_workers();
  worker->set_name("bad\"name\n");
  worker->mutable_report()->set_compute_ms(250);
  worker->mutable_report()->add_partitions(3);
  snapshot.counts.round_seconds.Add(0.3);
  snapshot.files.emplace().bytes = 7;
  const std::string text = MetricsText({"kumo-server", "server-0", "1", "abc"}, {}, &snapshot);
  for (const char* line :
       {"# TYPE kumo_round_seconds histogram", "kumo_round_seconds_bucket{le=\"0.25\"} 0",
        "kumo_round_seconds_bucket{le=\"0.5\"} 1", "kumo_round_seconds_bucket{le=\"+Inf\"} 1",
        "kumo_round_seconds_count 1", "kumo_sent_bytes_total{type=\"chunk\"} 100",
        "kumo_job_phase{phase=\"training\"} 1", "kumo_job_phase{phase=\"failed\"} 0",
        "kumo_worker_round_seconds{worker=\"bad\\\"name\\n\",part=\"compute\"} 0.25",
        "kumo_leases 1", "kumo_round 812", "kumo_checkpoint_file_bytes_total 7"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("kumo_validation_loss"))) << "it is not known";
}

TEST(RunHistory, IsNeverLongerThanItsLimitsAndSpansTheWholeRun) {
  RunHistory history;
  constexpr int kSeconds = 100'000;
  for (int i = 1; i <= kSeconds; ++i) {
    HistoryPoint point;
    point.until_s = i;
    point.seconds = 1;
    point.samples = 10;
    point.loss_sum = 10.0 * i;
    history.Add(point);
    history.Add(HistoryEvent{HistoryEvent::Kind::kCheckpoint, static_cast<double>(i), i, "saved"});
  }
  int64_t samples = 0;
  double seconds = 0, loss = 0;
  for (const HistoryPoint& point : history.points()) {
    samples += point.samples;
    seconds += point.seconds;
    loss += point.loss_sum;
  }
  EXPECT_LE(history.points().size(), RunHistory::kPoints);
  EXPECT_GE(history.points().size(), RunHistory::kPoints / 2 - 1);
  EXPECT_EQ(samples, 10 * kSeconds);
  EXPECT_EQ(seconds, kSeconds);
  EXPECT_EQ(loss, 10.0 * kSeconds * (kSeconds + 1) / 2) << "merged, not thrown away";
  EXPECT_EQ(history.points().back().until_s, kSeconds);
  EXPECT_EQ(history.events().size(), RunHistory::kEvents);
  EXPECT_EQ(history.events().front().round, 1);
  EXPECT_EQ(history.events().back().round, kSeconds);
}

}  // namespace
}  // namespace kumo
