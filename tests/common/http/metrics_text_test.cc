
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/metrics_text.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {

namespace {

using testing::HasSubstr;
using testing::Not;

const ProcessTitle kTitle = {"kumo-server", "server-0", "1", "abc"};

ProcessSnapshot OfServer0() {
  ProcessSnapshot snapshot;
  snapshot.job.emplace();
  snapshot.job->set_job_name("lenet");
  snapshot.job->set_phase("training");
  snapshot.job->set_round(812);
  return snapshot;
}

TEST(MetricsText, NamesAndLabels) {
  ProcessSnapshot snapshot = OfServer0();
  snapshot.traffic.Sent(wire::CHUNK, 100);
  auto* worker = snapshot.job->add_workers();
  worker->set_name("bad\"name\n");
  worker->mutable_report()->set_compute_ms(250);
  worker->mutable_report()->add_partitions(3);
  snapshot.counts.round_seconds.Add(0.3);
  snapshot.files.emplace().bytes = 7;
  const std::string text = MetricsText(kTitle, {}, &snapshot);
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

TEST(MetricsText, WhatIsNoNumberIsSaidAsPrometheusWantsIt) {
  ProcessSnapshot snapshot = OfServer0();
  test::AddFigure("loss", std::numeric_limits<double>::quiet_NaN(), &*snapshot.job);
  test::AddValidationFigure("loss", std::numeric_limits<double>::infinity(), &*snapshot.job);
  snapshot.job->set_eta_seconds(-std::numeric_limits<double>::infinity());
  const std::string text = MetricsText(kTitle, {}, &snapshot);
  EXPECT_THAT(text, HasSubstr("\nkumo_loss Nan\n"));
  EXPECT_THAT(text, HasSubstr("\nkumo_validation_loss +Inf\n"));
  EXPECT_THAT(text, HasSubstr("\nkumo_remaining_seconds -Inf\n"));
}

TEST(MetricsText, EveryMetricIsThereAndTwoHaveNamesOfTheirOwnBesides) {
  ProcessSnapshot snapshot = OfServer0();
  test::AddFigure("accuracy", 0.5, &*snapshot.job);
  test::AddFigure("top5_accuracy", 0.75, &*snapshot.job);
  test::AddValidationFigure("top5_accuracy", 0.875, &*snapshot.job);
  const std::string text = MetricsText(kTitle, {}, &snapshot);
  for (const char* line :
       {"kumo_metric{metric=\"accuracy\"} 0.5", "kumo_metric{metric=\"top5_accuracy\"} 0.75",
        "kumo_validation_metric{metric=\"top5_accuracy\"} 0.875", "kumo_accuracy_ratio 0.5"}) {
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
  }
}

TEST(MetricsText, LargeCountsKeepTheirDigits) {
  ProcessSnapshot snapshot = OfServer0();
  snapshot.counts.samples = 9'007'199'254'740'991;  // the last that a double counts one by one
  snapshot.traffic.Sent(wire::PUSH, 123'456'789'012'345);
  const std::string text = MetricsText(kTitle, {}, &snapshot);
  EXPECT_THAT(text, HasSubstr("kumo_samples_total 9007199254740991\n"));
  EXPECT_THAT(text, HasSubstr("kumo_sent_bytes_total{type=\"push\"} 123456789012345\n"));
}

// Prometheus refuses the whole text where a series is in it twice.
TEST(MetricsText, NoSeriesIsThereTwiceWhateverWorkersCallThemselves) {
  ProcessSnapshot snapshot = OfServer0();
  for (const char* name : {"a", "b", "a", "", ""}) {
    auto* worker = snapshot.job->add_workers();
    worker->set_name(name);
    worker->mutable_report()->add_partitions(1);
  }
  const std::string text = MetricsText(kTitle, {}, &snapshot);
  for (const char* series :
       {"kumo_worker_leases{worker=\"a\"} ", "kumo_worker_leases{worker=\"\"} "}) {
    EXPECT_THAT(text, HasSubstr(series));
    EXPECT_EQ(text.find(series), text.rfind(series)) << series;
  }
  EXPECT_THAT(text, HasSubstr("\nkumo_workers 5\n"));
  EXPECT_THAT(text, HasSubstr("\nkumo_leases 5\n"));
}

TEST(MetricsText, BeforeThereIsASnapshotTheProcessItselfIsThere) {
  OwnProcess process;
  process.cpu_s = 1.5;
  const std::string text = MetricsText(kTitle, process, nullptr);
  EXPECT_THAT(text, HasSubstr("process_cpu_seconds_total 1.5\n"));
  EXPECT_THAT(text, HasSubstr("process=\"server-0\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("process_open_fds"))) << "it is not known";
  EXPECT_THAT(text, Not(HasSubstr("kumo_ready")));
}

}  // namespace

namespace {

TEST(OwnProcess, SaysWhatTheKernelSays) {
  const OwnProcess before = LookAtOwnProcess();
  ASSERT_TRUE(before.open_fds && before.max_fds && before.resident_bytes && before.virtual_bytes &&
              before.started_s && before.cpu_s);
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(*LookAtOwnProcess().open_fds, *before.open_fds + 1);
  close(fd);
  EXPECT_EQ(*LookAtOwnProcess().open_fds, *before.open_fds);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(*before.max_fds, static_cast<int64_t>(limit.rlim_cur));
  EXPECT_GT(*before.resident_bytes, 1 << 20);
  EXPECT_LT(*before.resident_bytes, *before.virtual_bytes);
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LT(*before.started_s, now + 2) << "of a kernel's ticks and of whole seconds";
  EXPECT_GT(*before.started_s, now - 86400);
}

TEST(OwnProcess, CpuTimeIsOfAllThreadsAndInSeconds) {
  const double before = *LookAtOwnProcess().cpu_s;
  // As much work as the process' own clock says takes a tenth of a second.
  const auto cpu = [] {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double until = cpu() + 0.1;
  std::thread([&] {
    while (cpu() < until) {
    }
  }).join();
  // The kernel counts in ticks of 10 ms.
  EXPECT_NEAR(*LookAtOwnProcess().cpu_s - before, cpu() - (until - 0.1), 0.05);
}

}  // namespace

}  // namespace kumo
