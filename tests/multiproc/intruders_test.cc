// Processes that are not what they say: the job's own live on, and end with the weights that they
// would have had. With real processes.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/transport/intruder.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// 4 partitions that carry something, 8 rounds an epoch. A worker that a test has stopped is not
// taken for lost; another one may help out, about one round a second.
void SmallJob(ClusterOfProcesses* job) {
  SetSmallLenet(job);
  job->Set("job.epochs", "4");
  job->Set("sync.push_codec", "1bit");
  job->Set("cluster.recovery", "exact");
  job->Set("cluster.suspect_after_s", "60");
}

void ExpectDone(ClusterOfProcesses* job, const std::vector<std::string>& processes) {
  for (const std::string& id : processes) {
    const Ended ended = job->Wait(id);
    EXPECT_EQ(ended.code, 0) << id << ": " << ended.output;
  }
}

const std::vector<float>& UndisturbedWeights() {
  static const std::vector<float>* const weights = [] {
    ClusterOfProcesses job("undisturbed");
    SmallJob(&job);
    job.StartAll(2, 2);
    ExpectDone(&job, {"server-0", "server-1", "worker-0", "worker-1"});
    return new std::vector<float>(job.FinalWeights());
  }();
  return *weights;
}

// Two sockets under one name, each of which takes the other's connection away as often as it can;
// under that of a server also while the job trains.
TEST(Intruders, ConnectionsThatFightOverANameEndNoServer) {
  ClusterOfProcesses job("fight");
  SmallJob(&job);
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(2, "worker-1", SIGSTOP));
  job.Signal("worker-0", SIGSTOP);
  wire::Header status;
  status.set_type(wire::STATUS);
  const std::string frame = status.SerializeAsString();
  const std::string& address = job.addresses()[0];
  for (const std::string& id : {std::string("client/x"), IdOf("client/x"), IdOf("server/1")}) {
    for (int turn = 0; turn < 2; ++turn) {
      if (id == IdOf("server/1") && turn == 1) {
        for (const char* worker : {"worker-0", "worker-1"}) job.Signal(worker, SIGCONT);
      }
      Intruder one(address, id, /*reconnect_ms=*/1), other(address, id, /*reconnect_ms=*/1);
      for (int i = 0; i < 600; ++i) {
        one.Try(frame);
        other.Try(frame);
        usleep(100);
      }
    }
    // The job may be done before the last fight is: then its end is what counts.
    EXPECT_TRUE(job.WaitUntil([&] { return !job.Status().phase().empty(); }) ||
                !job.Running("server-0"))
        << "server 0 answers";
  }
  ExpectDone(&job, {"server-0", "server-1", "worker-0", "worker-1"});
  EXPECT_EQ(job.FinalWeights(), UndisturbedWeights());
}

TEST(Intruders, ASecondWorkerOfANameIsRefusedAndTheFirstUndisturbed) {
  ClusterOfProcesses job("second");
  SmallJob(&job);
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(2, "worker-0", SIGSTOP));
  job.Start("second", "kumo-worker", {job.experiment_file(), "--name", "worker-1"});
  const Ended second = job.Wait("second");
  EXPECT_EQ(second.code, 78) << second.output;
  EXPECT_THAT(second.output, HasSubstr("another process uses the name worker/worker-1"));
  job.Signal("worker-0", SIGCONT);
  ExpectDone(&job, {"server-0", "server-1", "worker-0", "worker-1"});
  EXPECT_EQ(job.FinalWeights(), UndisturbedWeights());
}

// What a process has in memory, in MiB.
int64_t ResidentMiB(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * getpagesize() >> 20;
}

// 330,000 empty claims in 1 MB of hello: 30 MB, were they believed.
std::string LongHello() {
  std::string claims;
  for (int i = 0; i < 330'000; ++i) claims += std::string("\x8a\x01\0", 3);
  wire::Header header;
  header.set_type(wire::HELLO);
  std::string bytes = header.SerializeAsString() + "\xaa\x01";
  auto length = static_cast<uint32_t>(claims.size());
  for (; length >= 128; length >>= 7) bytes += static_cast<char>(length | 128);
  return bytes + static_cast<char>(length) + claims;
}

// So much may server 0 grow by what strangers send, and do not read.
constexpr int64_t kMostGrowthMiB = 200;

TEST(Intruders, LongHellosAndAnswersThatNobodyReadsCostServer0LittleMemory) {
  ClusterOfProcesses job("memory");
  SmallJob(&job);
  job.StartAll(1, 1);
  ASSERT_TRUE(job.SignalAtRound(1, "worker-0", SIGSTOP));
  const int64_t before = ResidentMiB(job.pid("server-0"));
  wire::Header status;
  status.set_type(wire::STATUS);
  const std::string hello = LongHello(), ask = status.SerializeAsString();
  const std::string& address = job.addresses()[0];
  {
    std::vector<std::unique_ptr<Intruder>> strangers;
    for (int i = 0; i < 15; ++i) {
      const std::string id = IdOf("worker/stranger/" + std::to_string(i));
      strangers.push_back(std::make_unique<Intruder>(address, id));
    }
    for (int i = 0; i < 150; ++i) strangers[i % 15]->Send({hello});
    for (int i = 0; i < 20'000; ++i) strangers[i % 10]->Try(ask);
    for (int i = 0; i < 100; ++i) {
      EXPECT_LT(ResidentMiB(job.pid("server-0")) - before, kMostGrowthMiB);
      usleep(10'000);
    }
    EXPECT_FALSE(job.Status().phase().empty()) << "server 0 answers";
  }
  job.Signal("worker-0", SIGCONT);
  ExpectDone(&job, {"server-0", "worker-0"});
}

// A fault, not intent: who is replaced while it is frozen says so, and does not disturb.
TEST(Intruders, AServerThatWasReplacedWhileItWasFrozenEndsWhenItThaws) {
  ClusterOfProcesses job("frozen");
  SmallJob(&job);
  job.Set("cluster.suspect_after_s", "2");
  // Another process can take this address while the first one lives.
  const std::string socket = job.Path("server-1.socket");
  job.UseAddresses({"ipc://" + job.Path("server-0.socket"), "ipc://" + socket});
  job.StartAll(2);
  ASSERT_TRUE(job.SignalAtRound(2, "server-1", SIGSTOP));
  fs::remove(socket);
  job.Start("successor", "kumo-server", {job.experiment_file(), "--index", "1"});
  // The job has taken the successor for server 1 when it has gone back.
  ASSERT_TRUE(job.WaitUntil([&] { return job.Status().generation() >= 2; }));
  job.Signal("server-1", SIGCONT);
  const Ended former = job.Wait("server-1");
  EXPECT_EQ(former.code, 78) << former.output;
  EXPECT_THAT(former.output, HasSubstr("another process uses the name server/1"));
  ExpectDone(&job, {"server-0", "successor", "worker-0", "worker-1"});
  EXPECT_EQ(job.FinalWeights(), UndisturbedWeights());
}

}  // namespace
}  // namespace kumo::multiproc
