// What a job shows and records while it runs, with real processes: curves that equal runs share to
// the bit, nothing that is not known, and whom everybody waits for.
#include <signal.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two epochs of a small network: a warm-up within the first, then blocks.
void SmallJob(ClusterOfProcesses* job) {
  job->Set("job.name", "small");
  job->Set("job.epochs", "2");
  job->Set("network.file", std::string(KUMO_SOURCE_DIR) + "/tests/multiproc/small_lenet.pbtxt");
  job->Set("data.directory", SmallDigits());
  job->Set("sync.mode", "block");
  job->Set("sync.partitions", "4");
  job->Set("sync.minibatch", "16");
  job->Set("sync.block", "2");
  job->Set("sync.warmup_samples", "500");
  job->Set("optimiser.type", "momentum");
  job->Set("schedule.learning_rate", "0.05");
  job->Set("output.directory", job->output());
  job->Set("output.interval_s", "0.05");
  job->Set("output.points_per_epoch", "10");
  job->Set("cluster.heartbeat_s", "0.1");
}

void ExpectDone(ClusterOfProcesses* job) {
  const Ended ended = job->Wait("server-0");
  EXPECT_EQ(ended.code, 0) << ended.output;
}

// The log's lines of one kind; without `times` only what does not depend on time.
std::vector<std::string> Lines(const ClusterOfProcesses& job, const std::string& kind,
                               bool times = false) {
  std::istringstream log(ReadFile(job.output() + "/log.jsonl"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) {
    if (line.find("\"kind\":\"" + kind + "\"") == std::string::npos) continue;
    lines.push_back(times ? line : line.substr(0, line.find(",\"elapsed_time\"")));
  }
  return lines;
}

// As they come, but an epoch that is evaluated again where a job goes on counts once.
std::vector<std::string> Curves(const ClusterOfProcesses& job) {
  std::vector<std::string> curves = Lines(job, "point");
  for (const std::string& epoch : Lines(job, "epoch")) {
    if (curves.back() != epoch) curves.push_back(epoch);
  }
  return curves;
}

TEST(Curves, EqualJobsHaveEqualOnesOnAnyNumberOfProcessesAndWhetherStoppedOrNot) {
  std::vector<std::string> reference;
  for (const auto& [servers, workers] : {std::pair(1, 1), std::pair(2, 3)}) {
    ClusterOfProcesses job("curves");
    SmallJob(&job);
    job.StartAll(servers, workers);
    ExpectDone(&job);
    if (reference.empty()) reference = Curves(job);
    EXPECT_EQ(Curves(job), reference) << servers << " servers, " << workers << " workers";
    EXPECT_EQ(Lines(job, "point").size(), 20u);
    EXPECT_EQ(Lines(job, "epoch").size(), 2u);
  }
  ASSERT_EQ(reference.size(), 22u);
  EXPECT_THAT(reference[0], AllOf(HasSubstr("\"main/loss\":"), HasSubstr("\"lr\":0.05")));

  ClusterOfProcesses job("curves-stopped");
  SmallJob(&job);
  job.StartAll(1, 2);
  ASSERT_TRUE(job.SignalAtRound(10, "server-0", SIGTERM));
  EXPECT_EQ(job.Wait("server-0").code, 75);
  const size_t before = Lines(job, "point").size();
  EXPECT_LT(before, 20u);
  for (const char* worker : {"worker-0", "worker-1"}) job.Wait(worker);
  job.StartAll(2, 1);
  ExpectDone(&job);
  EXPECT_EQ(Curves(job), reference);
}

TEST(Curves, WhatIsNotKnownIsNowhereMadeUp) {
  ClusterOfProcesses job("unknown");
  SmallJob(&job);
  job.StartAll(1, 2);
  ExpectDone(&job);
  const std::string shown = ReadFile(job.Path("server-0.output"));
  EXPECT_THAT(shown, Not(HasSubstr("loss 0.0000")));
  const std::vector<std::string> lines = Lines(job, "progress", /*times=*/true);
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    EXPECT_THAT(line, Not(HasSubstr("loss")));
    const std::string key = "\"network_ms\":";
    const size_t at = line.find(key);
    // The machine has been up for longer than the job ran.
    if (at != std::string::npos) {
      EXPECT_LT(std::stod(line.substr(at + key.size())), 1000.0 * kLimitSeconds) << line;
    }
  }
}

TEST(StartGate, EverybodySaysForWhom) {
  ClusterOfProcesses job("waiting");
  SmallJob(&job);
  job.UseServers(3);
  job.Set("cluster.workers", "1");
  job.WriteExperiment();
  const auto says = [&](const std::string& process, const std::string& words) {
    const std::string output = job.Path(process + ".output");
    return job.WaitUntil(
        [&] { return ReadFile(output).find("waits for " + words) != std::string::npos; }, process);
  };
  const std::string server_0 = "server 0 at " + job.addresses()[0];
  const std::string server_2 = "server 2 at " + job.addresses()[2];
  job.StartServer(1);
  job.StartWorker(0);
  EXPECT_TRUE(says("server-1", server_0));
  EXPECT_TRUE(says("worker-0", server_0));
  job.StartServer(0);
  EXPECT_TRUE(says("server-0", server_2));
  EXPECT_TRUE(says("worker-0", server_2));
  EXPECT_TRUE(job.WaitUntil([&] {
    const wire::JobStatus status = job.Status();
    return status.waits_for() == server_2 && status.workers_size() == 1 &&
           status.workers(0).report().state() == "waits for " + server_2;
  }));
  job.StartServer(2);
  ExpectDone(&job);
}

TEST(StartGate, AWorkerThatIsSilentIsShownSoBeforeItIsLost) {
  ClusterOfProcesses job("silent");
  SmallJob(&job);
  job.Set("job.epochs", "1000");
  job.Set("cluster.suspect_after_s", "1000");
  job.StartAll(1, 2);
  ASSERT_TRUE(job.SignalAtRound(5, "worker-1", SIGSTOP));
  EXPECT_TRUE(job.WaitUntil([&] {
    const wire::JobStatus status = job.Status();
    for (const auto& worker : status.workers()) {
      if (worker.name() == "worker-1" && worker.silent_seconds() > 1) return true;
    }
    return false;
  }));
  const Ended status = job.Run("kumo", {"status", job.addresses()[0]});
  EXPECT_THAT(status.output, HasSubstr("  silent for "));
  EXPECT_TRUE(job.WaitUntil([&] {
    return ReadFile(job.Path("server-0.output")).find("worker-1 silent for 1 s") !=
           std::string::npos;
  }));
  job.Signal("worker-1", SIGCONT);
  EXPECT_TRUE(job.WaitUntil([&] {
    const wire::JobStatus now = job.Status();
    return now.workers_size() == 2 && !now.workers(0).has_silent_seconds() &&
           !now.workers(1).has_silent_seconds();
  }));
  job.Signal("server-0", SIGTERM);
  EXPECT_EQ(job.Wait("server-0").code, 75);
}

TEST(Evaluate, PrintsJsonWithTheFiguresOfTheLastEpoch) {
  ClusterOfProcesses job("evaluate-json");
  SmallJob(&job);
  job.Set("job.epochs", "1");
  job.StartAll(1, 1);
  ExpectDone(&job);
  const Ended evaluated = job.Run("kumo", {"evaluate", job.experiment_file(), "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.output;
  const auto number = [](const std::string& text, const std::string& name) {
    const std::string key = "\"" + name + "\":";
    const size_t at = text.find(key);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + key.size()));
  };
  EXPECT_THAT(evaluated.output, testing::StartsWith("{\"checkpoint\":\""));
  EXPECT_THAT(evaluated.output, testing::EndsWith("}\n"));
  EXPECT_EQ(job.Run("kumo-worker", {job.experiment_file(), "--json"}).code, 64);
  const std::string epoch = Lines(job, "epoch").at(0);
  for (const char* name : {"validation/main/loss", "validation/main/accuracy"}) {
    EXPECT_NEAR(number(evaluated.output, name), number(epoch, name), 1e-6) << name;
  }
}

}  // namespace
}  // namespace kumo::multiproc
