
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/process_view.h"

namespace kumo {

namespace {

using testing::HasSubstr;

class ViewClock : public Clock {
 public:
  TimeUs NowUs() const override { return now; }
  TimeUs now = 0;
};

ProcessSnapshot ViewOfServer0() {
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
  ViewClock clock;
  ProcessView view({"kumo-server", "server-0", "1", "abc", true}, &clock);
  EXPECT_EQ(view.Answer("/healthz").code, 200) << "it starts";
  view.Turned();
  clock.now = ProcessView::kStuckAfter - 1;
  EXPECT_EQ(view.Answer("/healthz").code, 200);
  clock.now = ProcessView::kStuckAfter;
  EXPECT_EQ(view.Answer("/healthz").code, 503);
  EXPECT_THAT(*view.Answer("/healthz").body, HasSubstr("has not turned for 30 s"));
  view.Turned();
  EXPECT_EQ(view.Answer("/healthz").code, 200);
}

TEST(ProcessView, IsReadyWhenItSaysSoAndElseNamesWhatItWaitsFor) {
  ViewClock clock;
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
  ViewClock clock;
  ProcessView worker({"kumo-worker", "worker-0", "1", "abc"}, &clock);
  for (const char* path : {"/", "/page.js", "/status.json", "/history.json"}) {
    EXPECT_EQ(worker.Answer(path).code, 404) << path;
  }
  ProcessView server({"kumo-server", "server-0", "1", "abc", true}, &clock);
  EXPECT_EQ(server.Answer("/status.json").code, 503) << "there is nothing yet";
  server.Publish(ViewOfServer0(), 0);
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
  ViewClock clock;
  ProcessView view({"kumo-server", "server-0", "1", "abc", true}, &clock);
  view.Publish(ViewOfServer0(), 0);
  const auto first = view.Answer("/metrics").body;
  EXPECT_EQ(view.Answer("/metrics").body, first);
  view.Publish(ViewOfServer0(), 0);
  EXPECT_NE(view.Answer("/metrics").body, first);
}

}  // namespace

namespace {

using testing::HasSubstr;
using testing::StartsWith;

const ProcessTitle kViewTitle = {"kumo-server", "server-0", "1", "abc", true};

TEST(ShownProcess, ShowsNothingWhereNobodyAsksForIt) {
  const auto shown = ShownProcess::Start("", "http.address", kViewTitle);
  ASSERT_TRUE(shown.ok());
  EXPECT_EQ(*shown, nullptr);
}

TEST(ShownProcess, AnAddressThatIsTakenIsAnErrorOfWhoAskedForIt) {
  const auto first = ShownProcess::Start("127.0.0.1:0", "--http", kViewTitle);
  ASSERT_TRUE(first.ok());
  const std::string taken = (*first)->address();
  const auto second = ShownProcess::Start(taken, "http.address", kViewTitle);
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), StartsWith("http.address"));
  EXPECT_THAT(second.status().message(), HasSubstr(taken));
}

TEST(ShownProcess, ABrowserIsGivenANameThatItCanConnectTo) {
  const auto local = ShownProcess::Start("127.0.0.1:0", "--http", kViewTitle);
  ASSERT_TRUE(local.ok());
  EXPECT_EQ((*local)->Url("gpu-7"), "http://" + (*local)->address() + "/");
  const auto open = ShownProcess::Start("*:0", "--http", kViewTitle);
  ASSERT_TRUE(open.ok());
  const std::string address = (*open)->address();
  EXPECT_EQ((*open)->Url("gpu-7"), "http://gpu-7" + address.substr(address.rfind(':')) + "/");
}

}  // namespace

}  // namespace kumo
