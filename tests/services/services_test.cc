// Whole jobs in one process: each server and each worker with the threads that it has in a process
// of its own, over ZeroMQ, on a real disk. What the protocol does is tested elsewhere (tests/sim/);
// here threads meet, so that the sanitizers see them meet.
#include <csignal>
#include <cstring>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cli/arguments/running_job.h"
#include "cli/chrome_trace.h"
#include "common/base/clock.h"
#include "common/base/process/signals.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/resume_point.h"
#include "data/digits/digit_set.h"
#include "server/disks/generation_file.h"
#include "server/service/server_service.h"
#include "tests/scratch_directory.h"
#include "tests/services/liar.h"
#include "worker/training/initial_weights.h"
#include "worker/training/trainer.h"
#include "worker/worker_service.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace kumo {
namespace {

constexpr char kNetwork[] = R"(
  name: "tiny"
  input { channels: 1 height: 28 width: 28 }
  layers { name: "pool" average_pooling { kernel: 4 } }
  layers { name: "fc1" fully_connected { outputs: 16 } }
  layers { name: "norm" batch_normalisation {} }
  layers { name: "tanh" tanh {} }
  layers { name: "fc2" fully_connected { outputs: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

// What a process's signals are to a service of its own.
class Stops : public StopSource {
 public:
  Stops() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Stops() override { close(fd_); }
  void Signal() {
    const uint64_t one = 1;
    ASSERT_EQ(write(fd_, &one, sizeof one), ssize_t{sizeof one});
  }
  int fd() const override { return fd_; }
  std::vector<int> Take() override {
    uint64_t count = 0;
    if (read(fd_, &count, sizeof count) < 0) return {};
    return {SIGTERM};
  }

 private:
  const int fd_;
};

// A disk on which manifests wait at a gate: the job cannot end while it is closed.
class GatedFileSystem : public PosixFileSystem {
 public:
  Status Rename(const std::string& from, const std::string& to) override {
    if (to.ends_with("/MANIFEST")) {
      std::unique_lock lock(mutex_);
      moved_.wait(lock, [&] { return passes_ != 0; });
      if (passes_ > 0) --passes_;
    }
    return PosixFileSystem::Rename(from, to);
  }
  // So many manifests more may pass; all of them from now on where it is negative.
  void Open(int passes) {
    const std::scoped_lock lock(mutex_);
    passes_ = passes;
    moved_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  int passes_ = -1;
};

// A service on a thread of its own, until it ends by itself.
class Running {
 public:
  explicit Running(std::function<Status(StopSource*)> run)
      : thread_([this, run = std::move(run)] {
          status_ = run(&stops_);
          ended_ = true;
        }) {}
  ~Running() {
    if (thread_.joinable()) (void)Kill();
  }
  void Stop() { stops_.Signal(); }
  Status Wait() {
    thread_.join();
    return status_;
  }
  // Tells it to end until it has, at once, whatever it was doing.
  Status Kill() {
    while (!ended_) {
      Stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Wait();
  }

 private:
  Stops stops_;
  Status status_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses the others
};

class ServicesTest : public testing::Test {
 protected:
  void SetUp() override {
    PosixFileSystem files;
    DigitSetOptions digits;
    digits.directory = scratch_ / "data";
    digits.train = 90;
    digits.validation = 23;
    ASSERT_TRUE(WriteDigitSet(files, digits).ok());
    ASSERT_TRUE(WriteFileAtomically(files, scratch_ / "tiny.pbtxt", kNetwork).ok());
  }

  // A job of 12 rounds, with everything that has a thread of its own.
  Experiment Job(const std::string& name, int servers, int workers) {
    Experiment e;
    e.job.name = "tiny";
    e.job.epochs = 4;
    e.network.file = scratch_ / "tiny.pbtxt";
    e.data.directory = scratch_ / "data";
    e.data.class_shares.equal = true;
    e.sync.mode = SyncMode::kBlock;
    e.sync.partitions = 4;
    e.sync.minibatch = 5;
    e.sync.block = 2;
    e.sync.push_codec = CodecId::kOneBit;
    e.schedule.learning_rate = 0.1;
    e.cluster.chunk_kib = 1;
    e.cluster.server_threads = 2;
    e.cluster.workers = workers;
    e.checkpoint.every_epochs = 1;
    e.checkpoint.keep = 10;
    e.output.directory = scratch_ / name;
    for (int s = 0; s < servers; ++s) {
      e.cluster.servers.push_back("ipc://" + (scratch_ / (name + std::to_string(s))));
    }
    return e;
  }

  std::unique_ptr<Running> Server(const Experiment& e, int index, FileSystem* files) {
    return Server(e, index, files, &clock_);
  }
  std::unique_ptr<Running> Server(const Experiment& e, int index, FileSystem* files,
                                  const Clock* clock) {
    return std::make_unique<Running>([=, this](StopSource* stops) -> Status {
      ServerNodeSettings settings;
      settings.index = index;
      settings.experiment = e;
      settings.identity = IdentityOf(e);
      settings.process = NextProcess();
      std::unique_ptr<RunRecorder> recorder;
      if (index == 0) {
        KUMO_ASSIGN_OR_RETURN(ResumePoint resume, FindCheckpointToResume(*files, e));
        settings.restored = std::move(resume.manifest);
        KUMO_RETURN_IF_ERROR(files->CreateDirectories(e.output.directory));
        RunRecorderSettings record;
        record.directory = e.output.directory;
        if (settings.restored) record.resumed_round = settings.restored->version();
        recorder = std::make_unique<RunRecorder>(record, *files, clock, &console_);
        KUMO_ASSIGN_OR_RETURN(
            settings.generation,
            ReserveGeneration(*files, e, settings.restored ? settings.restored->generation() : 0));
      }
      KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ServerService> service,
                            ServerService::Make(settings, e.cluster.servers[index], files, clock,
                                                stops, std::move(recorder)));
      return service->Run();
    });
  }
  std::unique_ptr<Running> Worker(const Experiment& e, const std::string& name) {
    return Worker(e, name, &clock_);
  }
  std::unique_ptr<Running> Worker(const Experiment& e, const std::string& name,
                                  const Clock* clock) {
    return std::make_unique<Running>([=, this](StopSource* stops) -> Status {
      KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Make(e, clock));
      SessionSettings settings;
      settings.experiment = e;
      settings.identity = IdentityOf(e);
      settings.spec = trainer->spec();
      settings.name = name;
      settings.device = "cpu";
      settings.process = NextProcess();
      KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerService> service,
                            WorkerService::Make(settings, clock, trainer.get(), stops));
      return service->Run();
    });
  }

  // The weights of the last checkpoint.
  std::vector<float> Weights(const Experiment& e) {
    PosixFileSystem files;
    const std::string folder = JoinPath(e.output.directory, "checkpoints");
    const Result<VerifiedCheckpoint> newest = NewestVerified(files, folder);
    EXPECT_TRUE(newest.ok()) << newest.status().message();
    if (!newest.ok()) return {};
    EXPECT_EQ(newest->manifest.version(), 12);
    const Result<std::unique_ptr<Trainer>> trainer = Trainer::Make(e, &clock_);
    EXPECT_TRUE(trainer.ok());
    const auto weights =
        LoadStoredWeights(JoinPath(folder, newest->name), (*trainer)->spec().layout);
    EXPECT_TRUE(weights.ok()) << weights.status().message();
    return {weights->span().begin(), weights->span().end()};
  }
  std::vector<float> Undisturbed() {
    const Experiment e = Job("undisturbed", 1, 1);
    const auto server = Server(e, 0, &disk_);
    const auto worker = Worker(e, "a");
    EXPECT_TRUE(worker->Wait().ok());
    EXPECT_TRUE(server->Wait().ok());
    return Weights(e);
  }
  void WaitForCheckpoint(const Experiment& e) {
    PosixFileSystem files;
    const std::string folder = JoinPath(e.output.directory, "checkpoints");
    while (!NewestVerified(files, folder).ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  test::ScratchDirectory scratch_;
  SteadyClock clock_;
  PosixFileSystem disk_;

  // Each process later than those before it.
  ProcessIdentity NextProcess() {
    const int next = ++processes_;
    return {"here", next, static_cast<uint64_t>(next), "boot", next};
  }

 private:
  class Silent : public Console {
   public:
    int Width() const override { return 0; }
    void Write(std::string_view) override {}
  } console_;
  std::atomic<int> processes_{0};
};

TEST_F(ServicesTest, SeveralServersAndWorkersMakeTheBitsOfOneOfEach) {
  const Experiment e = Job("several", 3, 2);
  std::vector<std::unique_ptr<Running>> services;
  for (int s = 0; s < 3; ++s) services.push_back(Server(e, s, &disk_));
  for (const char* name : {"a", "b"}) services.push_back(Worker(e, name));
  for (const auto& service : services) {
    const Status status = service->Wait();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(Weights(e), Undisturbed());
}

// By lossy codecs both ways, momentum on both sides, and a frozen batch normalisation.
TEST_F(ServicesTest, FrozenLayersKeepTheirBitsAndTheOthersAreTrained) {
  std::string network = kNetwork;
  for (const std::string layer : {"\"fc1\"", "\"norm\""}) {
    network.insert(network.find(layer) + layer.size(), " trainable: false");
  }
  ASSERT_TRUE(WriteFileAtomically(disk_, scratch_ / "frozen.pbtxt", network).ok());
  std::vector<std::vector<float>> weights;
  for (const int servers : {3, 1}) {
    Experiment e = Job("frozen" + std::to_string(servers), servers, servers > 1 ? 2 : 1);
    e.network.file = scratch_ / "frozen.pbtxt";
    e.block.nesterov = true;
    e.sync.pull_codec = CodecId::kFp16;
    std::vector<std::unique_ptr<Running>> services;
    for (int s = 0; s < servers; ++s) services.push_back(Server(e, s, &disk_));
    for (int w = 0; w < e.cluster.workers; ++w) {
      services.push_back(Worker(e, std::string(1, static_cast<char>('a' + w))));
    }
    for (const auto& service : services) {
      const Status status = service->Wait();
      EXPECT_TRUE(status.ok()) << status.message();
    }
    weights.push_back(Weights(e));
  }
  EXPECT_EQ(weights[0], weights[1]);

  Experiment e = Job("initial", 1, 1);
  e.network.file = scratch_ / "frozen.pbtxt";
  const auto frozen = Trainer::Make(e, &clock_).value();
  const ParameterLayout& layout = frozen->spec().layout;
  std::vector<float> initial(layout.size());
  ASSERT_TRUE(frozen->net().InitialWeights(e.job.seed, layout, initial).ok());
  ASSERT_EQ(weights[0].size(), initial.size());
  for (size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorSpec& tensor = layout.tensors()[t];
    const Range range = layout.tensor(static_cast<int>(t));
    const bool same = std::equal(initial.begin() + range.begin, initial.begin() + range.end,
                                 weights[0].begin() + range.begin);
    EXPECT_EQ(same, tensor.name.starts_with("fc1.") || tensor.name.starts_with("norm."))
        << tensor.name;
  }
}

TEST_F(ServicesTest, AStoppedJobGoesOnWithTheSameBits) {
  const Experiment e = Job("stopped", 2, 1);
  GatedFileSystem gated;
  gated.Open(1);
  {
    const auto first = Server(e, 0, &gated);
    const auto second = Server(e, 1, &gated);
    const auto worker = Worker(e, "a");
    WaitForCheckpoint(e);
    first->Stop();
    gated.Open(-1);
    // Where the last round was on its way already, the job is done instead.
    const Status status = first->Wait();
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnavailable) << status.message();
    EXPECT_EQ(second->Wait().code(), status.code());
    EXPECT_EQ(worker->Wait().code(), status.code());
  }
  const auto first = Server(e, 0, &disk_);
  const auto second = Server(e, 1, &disk_);
  const auto worker = Worker(e, "a");
  EXPECT_TRUE(worker->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_EQ(Weights(e), Undisturbed());
}

// Contributions count only from whom a partition is leased to, on whichever server.
TEST_F(ServicesTest, AMemberWithoutTheLeaseThatPushesGarbageChangesNoBit) {
  const Experiment e = Job("lied", 2, 1);
  const auto first = Server(e, 0, &disk_);
  const auto second = Server(e, 1, &disk_);
  std::atomic<bool> joined{false};
  std::atomic<int64_t> lies{0};
  Running liar([&](StopSource* stops) -> Status {
    KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Make(e, &clock_));
    Liar member(e, trainer->spec(), NextProcess(), /*partition=*/1);
    member.Join();
    joined = true;
    lies = member.Lie(stops);
    return OkStatus();
  });
  while (!joined) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto worker = Worker(e, "a");
  EXPECT_TRUE(worker->Wait().ok());
  liar.Stop();
  EXPECT_TRUE(liar.Wait().ok());
  EXPECT_GT(lies, 0);
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_EQ(Weights(e), Undisturbed());
}

// With versions kept twice the job goes on where it is, else from its last checkpoint.
TEST_F(ServicesTest, AServerThatIsKilledAndStartedAgainCostsNoBit) {
  const std::vector<float> undisturbed = Undisturbed();
  for (const int replicas : {1, 2}) {
    Experiment e = Job("killed" + std::to_string(replicas), 3, 1);
    e.cluster.replicas = replicas;
    e.cluster.recovery = StateLoss::kExact;
    GatedFileSystem gated;
    gated.Open(1);
    const auto first = Server(e, 0, &gated);
    const auto second = Server(e, 1, &gated);
    const auto third = Server(e, 2, &gated);
    const auto worker = Worker(e, "a");
    WaitForCheckpoint(e);
    EXPECT_FALSE(second->Kill().ok());
    const auto again = Server(e, 1, &gated);
    gated.Open(-1);
    for (const auto& service : {&worker, &first, &again, &third}) {
      const Status status = (*service)->Wait();
      EXPECT_TRUE(status.ok()) << status.message();
    }
    EXPECT_EQ(Weights(e), undisturbed);
  }
}

// The clock of a machine that was suspended.
class SuspendedClock : public Clock {
 public:
  TimeUs NowUs() const override { return clock_.NowUs() + suspended_; }
  void Suspend(TimeUs time) { suspended_ += time; }

 private:
  const SteadyClock clock_ = {};
  std::atomic<TimeUs> suspended_{0};
};

TEST_F(ServicesTest, AJobOnAMachineThatSleptForLongerThanAllTimeoutsGoesOn) {
  constexpr TimeUs kDay = 86400 * kSecond;
  const Experiment e = Job("asleep", 2, 1);
  GatedFileSystem gated;
  gated.Open(1);
  SuspendedClock machine;
  const RunningClock clocks[] = {RunningClock(&machine), RunningClock(&machine),
                                 RunningClock(&machine)};
  const auto first = Server(e, 0, &gated, &clocks[0]);
  const auto second = Server(e, 1, &gated, &clocks[1]);
  const auto worker = Worker(e, "a", &clocks[2]);
  WaitForCheckpoint(e);
  machine.Suspend(kDay);
  for (const RunningClock& clock : clocks) {
    while (clock.SkippedUs() < kDay) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  gated.Open(-1);
  for (const auto& service : {&worker, &first, &second}) {
    const Status status = (*service)->Wait();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(Weights(e), Undisturbed());
}

// Another machine's, which was started at another time.
class ShiftedClock : public Clock {
 public:
  explicit ShiftedClock(TimeUs shift) : shift_(shift) {}
  TimeUs NowUs() const override { return clock_.NowUs() + shift_; }

 private:
  const SteadyClock clock_ = {};
  const TimeUs shift_;
};

// Every number behind "ts": in a trace.
std::vector<int64_t> Times(const std::string& json) {
  std::vector<int64_t> times;
  const std::string key = "\"ts\":";
  for (size_t at = 0; (at = json.find(key, at)) != std::string::npos;) {
    at += key.size();
    times.push_back(std::stoll(json.substr(at, 20)));
  }
  return times;
}

TEST_F(ServicesTest, ATraceHasWhatEveryProcessDoesByOneClockAndCostsNoBit) {
  Experiment e = Job("traced", 2, 2);
  GatedFileSystem gated;
  gated.Open(0);  // the job does not end before the trace has been seen
  e.cluster.heartbeat_s = 0.05;
  const ShiftedClock ahead(1000 * kSecond), behind(-500 * kSecond);
  std::vector<std::unique_ptr<Running>> services;
  services.push_back(Server(e, 0, &gated));
  services.push_back(Server(e, 1, &gated));
  Result<std::unique_ptr<ServerConnection>> connection =
      ServerConnection::Open({e.cluster.servers[0], ""}, IdentityOf(e).JobId());
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)->Ask(wire::STATUS, wire::STATUS_REPLY, 60'000).ok());
  ChromeTrace trace;
  const auto listen = [&] {
    Message wish;
    wish.header.set_type(wire::TRACE);
    (*connection)->Say(std::move(wish));
    (*connection)->Listen(10 * kMillisecond, [&](const Message& message) {
      const auto& bytes = message.payload.bytes;
      if (message.header.type() == wire::TRACE_REPORT)
        trace.Add(message.header.trace_report(), bytes.data(), bytes.size());
    });
  };
  while (trace.processes() < 2) listen();
  services.push_back(Worker(e, "a", &ahead));
  while (trace.processes() < 3) listen();
  services.push_back(Worker(e, "b", &behind));  // which starts the first round
  const auto has = [](const std::string& json, const char* kind) {
    return json.find(std::string("\"name\":\"") + kind + "\"") != std::string::npos;
  };
  const auto whole = [&] {
    const std::string json = trace.Json();
    bool all = trace.processes() == 4;
    for (const char* kind :
         {"compute", "encode", "push", "pull", "install", "wait", "apply", "checkpoint"})
      all &= has(json, kind);
    return all;
  };
  while (!whole()) listen();
  gated.Open(-1);
  for (const auto& service : services) EXPECT_TRUE(service->Wait().ok());
  EXPECT_EQ(Weights(e), Undisturbed());

  const std::vector<int64_t> times = Times(trace.Json());
  EXPECT_EQ(*std::min_element(times.begin(), times.end()), 0);
  EXPECT_LT(*std::max_element(times.begin(), times.end()), 400 * kSecond);
  EXPECT_EQ(trace.lost(), 0);
}

}  // namespace
}  // namespace kumo
