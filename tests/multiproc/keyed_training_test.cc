// A job whose connections have keys, with real processes: the weights are those of one without,
// whoever is killed and whoever knocks.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/transport/key_files.h"
#include "common/transport/zmq_transport.h"
#include "tests/common/transport/intruder.h"
#include "tests/common/transport/recording_proxy.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void SmallJob(ClusterOfProcesses* job) {
  SetSmallLenet(job);
  job->Set("job.epochs", "4");
  job->Set("sync.push_codec", "1bit");
  job->Set("cluster.recovery", "exact");
  job->Set("cluster.suspect_after_s", "2");
}

void ExpectAllDone(ClusterOfProcesses* job) {
  for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
    const Ended ended = job->Wait(id);
    EXPECT_EQ(ended.code, 0) << id << ": " << ended.output;
  }
}

const std::vector<float>& WeightsWithoutKeys() {
  static const std::vector<float>* const weights = [] {
    ClusterOfProcesses job("without-keys");
    SmallJob(&job);
    job.StartAll(1, 1);
    EXPECT_EQ(job.Wait("server-0").code, 0);
    EXPECT_EQ(job.Wait("worker-0").code, 0);
    return new std::vector<float>(job.FinalWeights());
  }();
  return *weights;
}

std::string AllLogs(const ClusterOfProcesses& job) {
  std::string logs;
  for (const auto& file : std::filesystem::directory_iterator(job.output() + "/logs")) {
    if (!file.is_symlink()) logs += ReadFile(file.path().string());
  }
  for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
    logs += ReadFile(job.Path(std::string(id) + ".output"));
  }
  return logs;
}

TEST(KeyedTraining, KillsCostNoBitAndNoKeyIsLogged) {
  ClusterOfProcesses job("keyed");
  SmallJob(&job);
  const std::string keys = job.UseKeys(2, 2);
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(6, "server-0", SIGKILL));
  EXPECT_EQ(job.Wait("server-0").code, 128 + SIGKILL);
  const std::string before = AllLogs(job);
  job.StartServer(0);
  ASSERT_TRUE(job.SignalAtRound(6, "worker-1", SIGKILL));
  EXPECT_EQ(job.Wait("worker-1").code, 128 + SIGKILL);
  job.StartWorker(1);
  ExpectAllDone(&job);
  EXPECT_EQ(job.FinalWeights(), WeightsWithoutKeys());
  const std::string logs = before + AllLogs(job);
  for (const KeyHolder& holder : {ServerKey(0), ServerKey(1), WorkerKey(0), WorkerKey(1)}) {
    const SharedKeys own = ReadKeys(keys, holder).value();
    EXPECT_EQ(logs.find(own->own.secret_key), std::string::npos) << holder.ToString();
    EXPECT_EQ(logs.find(own->own.public_key), std::string::npos) << holder.ToString();
  }
}

// A process with a key of `keys` that says under `name` what only another may: that it is over.
std::unique_ptr<ZmqTransport> Liar(const std::string& address, const std::string& name,
                                   SharedKeys keys) {
  ZmqTransportOptions options;
  options.name = name;
  options.keys = std::move(keys);
  options.linger_ms = 0;
  auto transport = ZmqTransport::Make(options).value();
  EXPECT_TRUE(transport->Connect("server/0", address).ok());
  return transport;
}

// The servers alone, so that what knocks is refused before the job can end, however quick it is.
void StartServersFirst(ClusterOfProcesses* job) {
  job->UseServers(2);
  job->Set("cluster.workers", "2");
  job->WriteExperiment();
  for (int i = 0; i < 2; ++i) job->StartServer(i);
  ASSERT_TRUE(job->WaitUntil([&] { return !job->Status().phase().empty(); }));
}

TEST(KeyedTraining, StrangersAndLiarsCostNoBit) {
  ClusterOfProcesses job("knocked"), other("strangers");
  SmallJob(&job);
  const std::string keys = job.UseKeys(2, 2);
  ASSERT_NO_FATAL_FAILURE(StartServersFirst(&job));
  const std::string& address = job.addresses()[0];
  // Who has no key; who has the key of another job; who has one of this job, and another's name.
  Intruder stranger(address, IdOf("worker/worker-0/1"), 10);
  const std::string strange = other.UseKeys(2, 2);
  auto foreign = *ReadKeys(strange, WorkerKey(0)).value();
  foreign.allowed = ReadAllowList(keys).value();
  std::vector<std::unique_ptr<ZmqTransport>> liars;
  liars.push_back(
      Liar(address, "worker/worker-0/1", std::make_shared<const ConnectionKeys>(foreign)));
  liars.push_back(Liar(address, "server/1", ReadKeys(keys, WorkerKey(0)).value()));
  liars.push_back(Liar(address, "worker/worker-0/2", ReadKeys(keys, WorkerKey(1)).value()));
  liars.push_back(Liar(address, "server/0", ReadKeys(keys, ServerKey(1)).value()));
  Message lie;
  lie.header.set_type(wire::HELLO);
  const auto knock = [&] {
    stranger.Try("anything");
    for (const auto& liar : liars) {
      (void)liar->Send("server/0", lie);
      liar->Poll(kMillisecond, [](const PeerName& from, const Message&) {
        ADD_FAILURE() << from << " answers a liar";
      });
    }
  };
  const auto refused = AllOf(HasSubstr("its key is not in the allow list"),
                             HasSubstr("its key only allows the name worker/worker-"));
  ASSERT_TRUE(job.WaitUntil([&] {
    knock();
    return testing::Value(AllLogs(job), refused);
  }));
  EXPECT_FALSE(job.Status().phase().empty()) << "server 0 answers";
  for (int i = 0; i < 2; ++i) job.StartWorker(i);
  EXPECT_TRUE(job.WaitUntil([&] {
    knock();
    return !job.Running("server-0");
  }));
  ExpectAllDone(&job);
  EXPECT_EQ(job.FinalWeights(), WeightsWithoutKeys());
}

struct Taken {
  int64_t descriptors = 0, kib = 0;
};

Taken TakenBy(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  Taken taken;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder + "/fd")) {
    ++taken.descriptors;
  }
  int64_t all = 0;
  std::ifstream(folder + "/statm") >> all >> taken.kib;
  taken.kib *= sysconf(_SC_PAGESIZE) / 1024;
  return taken;
}

TEST(KeyedTraining, AFloodOfConnectionsCostsAServerNextToNothing) {
  constexpr int kFlood = 3000;
  constexpr int64_t kMostKib = 16 << 10;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, kFlood + 1000));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ClusterOfProcesses job("flood");
  SmallJob(&job);
  job.UseKeys(2, 2);
  ASSERT_NO_FATAL_FAILURE(StartServersFirst(&job));
  const pid_t server = job.pid("server-0");
  const Taken first = TakenBy(server);
  std::vector<int> open;
  for (int i = 0; i < kFlood; ++i) {
    open.push_back(ConnectToPort(PortIn(job.addresses()[0])));
    if (i % 2 == 0) (void)send(open.back(), "\xff\0\0\0\0\0\0\0\1\x7f\3", 11, MSG_NOSIGNAL);
  }
  Taken during;
  EXPECT_TRUE(job.WaitUntil([&] {
    during = TakenBy(server);
    return during.descriptors < first.descriptors + kFlood / 10;
  }));
  EXPECT_LT(during.kib, first.kib + kMostKib);
  EXPECT_FALSE(job.Status().phase().empty()) << "server 0 answers";
  std::fprintf(
      stderr, "%d connections: server 0 holds %" PRId64 " more descriptors, %" PRId64 " KiB more\n",
      kFlood, during.descriptors - first.descriptors, during.kib - first.kib);
  for (int i = 0; i < 2; ++i) job.StartWorker(i);
  ExpectAllDone(&job);
  for (const int fd : open) close(fd);
  EXPECT_EQ(job.FinalWeights(), WeightsWithoutKeys());
}

TEST(KeyedTraining, AProcessWithoutItsKeySaysWhichOneAndDoesNotStart) {
  ClusterOfProcesses job("keyless");
  SmallJob(&job);
  const std::string keys = job.UseKeys(1, 1);
  job.UseServers(1);
  job.Set("cluster.workers", "1");
  job.WriteExperiment();
  const Ended server = job.Run("kumo-server", {job.experiment_file(), "--index", "1"});
  EXPECT_NE(server.code, 0);
  const Ended worker = job.Run("kumo-worker", {job.experiment_file(), "--name", "worker-1"});
  EXPECT_EQ(worker.code, 78);
  EXPECT_THAT(worker.output, AllOf(HasSubstr("worker-1.key"), HasSubstr("kumo keys")));
  ASSERT_EQ(chmod((keys + "/worker-0.key").c_str(), 0644), 0);
  const Ended open = job.Run("kumo-worker", {job.experiment_file(), "--name", "worker-0"});
  EXPECT_EQ(open.code, 78);
  EXPECT_THAT(open.output, HasSubstr("can be read by others (mode 0644)"));
}

}  // namespace
}  // namespace kumo::multiproc
