// libkumo_worker by its C interface, with a server of the job in the same process.
#include "worker/library/kumo_worker.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process/signals.h"
#include "common/checkpoint/resume_point.h"
#include "common/settings/parser.h"
#include "common/settings/worker_program.h"
#include "server/disks/generation_file.h"
#include "server/service/server_service.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr int64_t kSamples = 22;  // two rounds of 2 * 4 and one of 6 in gradient mode
constexpr float kRate = 0.25f;

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

class Silent : public Console {
 public:
  int Width() const override { return 0; }
  void Write(std::string_view) override {}
};

int ThreadsOfThisProcess() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// The system may count an ended thread for a moment.
void ExpectThreads(int wanted) {
  for (int i = 0; i < 500 && ThreadsOfThisProcess() != wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(ThreadsOfThisProcess(), wanted);
}

class KumoWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    files_["job.seed"] = "3";
    files_["worker.command"] = "the program of this test";
    files_["cluster.servers"] = "ipc://" + (scratch_ / "server");
    files_["cluster.workers"] = "1";
    files_["cluster.chunk_kib"] = "2";
    files_["output.directory"] = scratch_ / "out";
    files_["sync.minibatch"] = "4";
    files_["job.epochs"] = "2";
    files_["optimiser.type"] = "sgd";
    files_["schedule.learning_rate"] = "0.25";
  }
  void TearDown() override {
    kumo_worker_close(worker_);
    if (!server_.joinable()) return;
    if (!served_ && !stopped_) stops_.Signal();
    server_.join();
  }

  void Set(const std::string& key, const std::string& value) { files_[key] = value; }
  void WriteExperiment() {
    std::string text;
    for (const auto& [key, value] : files_) {
      const size_t dot = key.find('.');
      text += "[" + key.substr(0, dot) + "]\n" + key.substr(dot + 1) + " = " + value + "\n";
    }
    ASSERT_TRUE(WriteFileAtomically(disk_, scratch_ / "own.conf", text).ok());
    const Result<Experiment> read = ParseExperiment(scratch_ / "own.conf", {}, {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    experiment_ = *read;
    is_written_ = true;
  }
  void StartServer() {
    WriteExperiment();
    server_ = std::thread([this] {
      const Status status = Serve();
      EXPECT_EQ(status.code(), ends_with_) << status.message();
      served_ = true;
    });
  }

  void StopServer() {
    stopped_ = true;
    stops_.Signal();
  }

  // Starts the server, unless the experiment was written without one.
  kumo_status Open() {
    if (!is_written_) StartServer();
    const kumo_tensor tensors[] = {
        {"layer.weight", weight_shape_, 2, KUMO_TENSOR_WEIGHTS, initial_.data()},
        {"layer.bias", bias_shape_, 1, KUMO_TENSOR_UNDECAYED, initial_.data() + 6},
        {"norm.mean", bias_shape_, 1, KUMO_TENSOR_STATISTICS, initial_.data() + 8},
        {"old.weight", bias_shape_, 1, KUMO_TENSOR_FROZEN, initial_.data() + 10}};
    const kumo_metric metrics[] = {{"loss", KUMO_METRIC_MEAN, 0},
                                   {"accuracy", KUMO_METRIC_SHARE, 1}};
    const std::string file = scratch_ / "own.conf";
    kumo_worker_options options = {};
    options.size = sizeof options;
    options.experiment = file.c_str();
    options.name = "worker-0";
    options.tensors = tensors;
    options.tensors_count = 4;
    options.metrics = metrics;
    options.metrics_count = 2;
    options.train_samples = kSamples;
    options.validation_samples = validation_samples_;
    return kumo_worker_open(&options, &worker_);
  }
  kumo_work Next() {
    kumo_work work = {};
    kumo_status status = KUMO_OK;
    while (status == KUMO_OK && work.kind == KUMO_WORK_NONE) {
      status = kumo_worker_next(worker_, 50, &work);
    }
    next_ = status;
    return work;
  }
  std::vector<int64_t> Samples(const kumo_work& work) {
    std::vector<int64_t> samples(static_cast<size_t>(work.samples));
    EXPECT_EQ(kumo_worker_samples(worker_, samples.data()), KUMO_OK) << kumo_error();
    return samples;
  }
  std::vector<float> Get(int tensor, size_t n) {
    std::vector<float> numbers(n);
    EXPECT_EQ(kumo_worker_get(worker_, tensor, numbers.data()), KUMO_OK) << kumo_error();
    return numbers;
  }
  void Set(int tensor, std::vector<float> numbers) {
    EXPECT_EQ(kumo_worker_set(worker_, tensor, numbers.data()), KUMO_OK) << kumo_error();
  }
  kumo_status Finish(double loss, double accuracy = 1) {
    const double sums[] = {loss, accuracy};
    return kumo_worker_finish(worker_, sums, 2);
  }
  // The gradient of sample i is i, of each number.
  static float MeanOf(const std::vector<int64_t>& samples) {
    float sum = 0;
    for (const int64_t sample : samples) sum += static_cast<float>(sample);
    return sum / static_cast<float>(samples.size());
  }
  // Trains and evaluates until the end; `block` computes one block.
  template <typename Block>
  void Run(Block block) {
    for (kumo_work work = Next(); next_ == KUMO_OK && work.kind != KUMO_WORK_DONE; work = Next()) {
      if (work.kind == KUMO_WORK_TRAIN) {
        block(work);
        continue;
      }
      for (const int64_t sample : Samples(work)) evaluated_.insert({work.round, sample});
      EXPECT_EQ(Get(3, 2), (std::vector<float>{11, 12}));
      EXPECT_EQ(Finish(0.5 * static_cast<double>(work.samples), 0), KUMO_OK) << kumo_error();
    }
    EXPECT_EQ(next_, KUMO_OK) << kumo_error();
  }

  test::ScratchDirectory scratch_;
  PosixFileSystem disk_;
  std::map<std::string, std::string> files_;
  Experiment experiment_;
  kumo_worker* worker_ = nullptr;
  kumo_status next_ = KUMO_OK;
  int64_t validation_samples_ = 5;
  StatusCode ends_with_ = StatusCode::kOk;  // of the server
  const int64_t weight_shape_[2] = {2, 3};
  const int64_t bias_shape_[1] = {2};
  const std::vector<float> initial_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::multiset<std::pair<int64_t, int64_t>> evaluated_;  // version, sample

 private:
  Status Serve() {
    ServerNodeSettings settings;
    settings.experiment = experiment_;
    settings.identity = IdentityOf(experiment_);
    settings.process = {"here", 1, 1, "boot", 1};
    KUMO_ASSIGN_OR_RETURN(ResumePoint resume, FindCheckpointToResume(disk_, experiment_));
    settings.restored = std::move(resume.manifest);
    const std::string& directory = experiment_.output.directory;
    KUMO_RETURN_IF_ERROR(disk_.CreateDirectories(directory));
    RunRecorderSettings record;
    record.directory = directory;
    auto recorder = std::make_unique<RunRecorder>(record, disk_, &clock_, &console_);
    KUMO_ASSIGN_OR_RETURN(settings.generation, ReserveGeneration(disk_, experiment_, 0));
    KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ServerService> service,
                          ServerService::Make(settings, experiment_.cluster.servers[0], &disk_,
                                              &clock_, &stops_, std::move(recorder)));
    return service->Run();
  }

  SteadyClock clock_;
  Silent console_;
  Stops stops_;
  bool is_written_ = false;
  bool stopped_ = false;
  std::atomic<bool> served_{false};
  std::thread server_;
};

TEST_F(KumoWorkerTest, GradientsAreSteppedOnTheServers) {
  Set("sync.mode", "gradient");
  std::thread([] {}).join();  // the thread sanitizer starts one of its own at the first
  const int before = ThreadsOfThisProcess();
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  std::map<int64_t, std::multiset<int64_t>> seen;  // by epoch
  std::map<int64_t, float> way;                    // by round: the sum of the means
  Run([&](const kumo_work& work) {
    EXPECT_EQ(work.steps, 0);
    const std::vector<int64_t> samples = Samples(work);
    seen[work.epoch].insert(samples.begin(), samples.end());
    const float mean = MeanOf(samples);
    way[work.round] += mean;
    Set(0, std::vector<float>(6, mean));
    Set(1, std::vector<float>(2, mean));
    Set(2, {static_cast<float>(work.round), static_cast<float>(work.partition)});
    EXPECT_EQ(Finish(mean * static_cast<double>(samples.size())), KUMO_OK) << kumo_error();
  });
  kumo_worker_close(std::exchange(worker_, nullptr));
  TearDown();
  ExpectThreads(before);
  ASSERT_EQ(seen.size(), 2u);
  for (const auto& [epoch, samples] : seen) {
    EXPECT_EQ(samples.size(), static_cast<size_t>(kSamples)) << epoch;
    EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), samples.size()) << epoch;
  }
  EXPECT_EQ(evaluated_.size(), 10u);  // five samples, after each epoch
  EXPECT_EQ(way.size(), 6u);

  kumo_weights* weights = nullptr;
  ASSERT_EQ(kumo_weights_open((scratch_ / "out").c_str(), &weights), KUMO_OK) << kumo_error();
  ASSERT_EQ(kumo_weights_count(weights), 4);
  EXPECT_STREQ(kumo_weights_name(weights, 0), "layer.weight");
  const int64_t* shape = nullptr;
  ASSERT_EQ(kumo_weights_shape(weights, 0, &shape), 2);
  EXPECT_EQ(std::vector(shape, shape + 2), (std::vector<int64_t>{2, 3}));
  float moved = 0;
  for (const auto& [round, means] : way) moved += kRate * means / 2;
  std::vector<float> numbers(6);
  kumo_weights_get(weights, 0, numbers.data());
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(numbers[i], initial_[i] - moved, 1e-3) << i;
  kumo_weights_get(weights, 2, numbers.data());  // the mean over the partitions
  EXPECT_NEAR(numbers[0], 5, 1e-6);
  EXPECT_NEAR(numbers[1], 0.5, 1e-6);
  kumo_weights_get(weights, 3, numbers.data());
  EXPECT_EQ(numbers[0], 11);
  kumo_weights_close(weights);
}

TEST_F(KumoWorkerTest, BlocksContributeTheWayOfTheWeightsAndCarryTheOptimisersState) {
  Set("sync.mode", "block");
  Set("sync.block", "2");
  Set("sync.push_codec", "1bit");
  Set("block.rule", "average");
  validation_samples_ = 0;
  Set("block.reset_local_state", "false");
  Set("optimiser.type", "momentum");
  Set("schedule.type", "step");
  Set("schedule.unit", "sample");
  Set("schedule.step", "16");
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  int32_t states = 0;
  ASSERT_EQ(kumo_worker_states(worker_, &states), KUMO_OK);
  ASSERT_EQ(states, 1);
  std::map<int, float> blocks;  // by partition
  std::set<uint64_t> seeds;
  Run([&](const kumo_work& work) {
    EXPECT_EQ(work.steps, 1);
    EXPECT_EQ(work.restarts, 0);
    EXPECT_EQ(work.steps_before, 2 * work.round);
    EXPECT_TRUE(seeds.insert(work.seed).second);
    float rate = 0;
    EXPECT_EQ(kumo_worker_learning_rate(worker_, 0, &rate), KUMO_OK) << kumo_error();
    EXPECT_FLOAT_EQ(rate, static_cast<float>(0.25 * std::pow(0.1, work.position / 16)));
    EXPECT_EQ(kumo_worker_learning_rate(worker_, 2, &rate), KUMO_INVALID_ARGUMENT);
    std::vector<float> state(6);
    EXPECT_EQ(kumo_worker_get_state(worker_, 0, 0, state.data()), KUMO_OK) << kumo_error();
    EXPECT_EQ(state[5], blocks[work.partition]);
    EXPECT_EQ(kumo_worker_get_state(worker_, 0, 2, state.data()), KUMO_INVALID_ARGUMENT);
    state.assign(6, ++blocks[work.partition]);
    EXPECT_EQ(kumo_worker_set_state(worker_, 0, 0, state.data()), KUMO_OK) << kumo_error();
    std::vector<float> weight = Get(0, 6);
    for (float& number : weight) number -= 1;
    Set(0, weight);
    Set(1, Get(1, 2));
    // The work goes on after a finish that is refused.
    EXPECT_EQ(Finish(0), KUMO_FAILED_PRECONDITION);
    EXPECT_THAT(kumo_error(), HasSubstr("norm.mean was not handed in"));
    Set(2, Get(2, 2));
    EXPECT_EQ(Finish(0, 1000), KUMO_INVALID_ARGUMENT);
    EXPECT_EQ(Finish(0), KUMO_OK) << kumo_error();
  });
  EXPECT_EQ(blocks.size(), 2u);
  EXPECT_EQ(evaluated_.size(), 0u);
}

// One worker; a block moves each weight by -1 a minibatch. The begin of the next one follows from
// the formulas of block_weights.h.
TEST_F(KumoWorkerTest, TheNextBlockBeginsDuringTheExchange) {
  Set("sync.mode", "block");
  Set("sync.minibatch", "2");
  Set("sync.block", "2");
  Set("sync.overlap", "1");
  Set("block.rule", "average");
  Set("optimiser.type", "momentum");
  Set("schedule.type", "step");
  Set("schedule.unit", "sample");
  Set("schedule.step", "4");
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  int32_t states = 0;
  ASSERT_EQ(kumo_worker_states(worker_, &states), KUMO_OK);
  ASSERT_EQ(states, 1);
  // An epoch's rounds have 8, 8 and 6 samples: 2 minibatches of each partition, the first one ahead
  // but in the epoch's first round.
  std::map<int64_t, std::multiset<int64_t>> seen;  // by epoch
  std::map<int, float> last;                       // by partition: where its last work ended
  std::set<uint64_t> seeds;
  float version = 1;  // of the first weight, as the servers have it
  int64_t closed = 0;
  Run([&](const kumo_work& work) {
    const bool begun = work.round % 3 != 0 && work.ahead == 0;
    const std::vector<int64_t> samples = Samples(work);
    seen[work.epoch].insert(samples.begin(), samples.end());
    EXPECT_TRUE(seeds.insert(work.seed).second);
    EXPECT_EQ(work.steps, 1);
    EXPECT_EQ(work.samples, work.ahead || (begun && work.round % 3 == 1) ? 2 : begun ? 1 : 4);
    EXPECT_EQ(work.restarts, begun ? 0 : 1);
    EXPECT_EQ(work.steps_before, begun ? 1 : 0);
    EXPECT_EQ(work.keeps_state, work.ahead);
    EXPECT_EQ(work.position, work.epoch * kSamples + work.round % 3 * 8 + (begun ? 4 : 0));
    float rate = 0;
    EXPECT_EQ(kumo_worker_learning_rate(worker_, 0, &rate), KUMO_OK) << kumo_error();
    EXPECT_FLOAT_EQ(rate, static_cast<float>(0.25 * std::pow(0.1, work.position / 4)));
    std::vector<float> state(6);
    EXPECT_EQ(kumo_worker_get_state(worker_, 0, 0, state.data()), KUMO_OK) << kumo_error();
    EXPECT_EQ(state[5], begun ? static_cast<float>(work.round) : 0);
    state.assign(6, static_cast<float>(work.round));
    EXPECT_EQ(kumo_worker_set_state(worker_, 0, 0, state.data()), KUMO_OK) << kumo_error();
    // Both partitions move alike, by 2 in each round.
    if (work.ahead == 0 && work.round > closed) {
      closed = work.round;
      version = 1 - 2 * static_cast<float>(closed);
    }
    std::vector<float> weight = Get(0, 6);
    if (work.ahead != 0) {
      EXPECT_EQ(weight[0], last[work.partition]) << work.round;  // y
    } else {
      EXPECT_EQ(weight[0], version - (begun ? 1 : 0)) << work.round;  // s + (z - y)
    }
    for (float& number : weight) number -= static_cast<float>((work.samples + 1) / 2);
    last[work.partition] = weight[0];
    Set(0, weight);
    EXPECT_EQ(Get(0, 6), weight);
    Set(1, Get(1, 2));
    Set(2, Get(2, 2));
    EXPECT_EQ(Finish(0), KUMO_OK) << kumo_error();
  });
  ASSERT_EQ(seen.size(), 2u);
  for (const auto& [epoch, samples] : seen) {
    EXPECT_EQ(samples.size(), static_cast<size_t>(kSamples)) << epoch;
    EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), samples.size()) << epoch;
  }
}

TEST_F(KumoWorkerTest, APartitionWithoutSamplesIsNotAskedFor) {
  Set("sync.mode", "gradient");
  Set("sync.partitions", "4");
  Set("sync.minibatch", "5");
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  std::map<int64_t, int> blocks;  // by round: of 20 and of 2 samples
  Run([&](const kumo_work& work) {
    ++blocks[work.round];
    for (const int tensor : {0, 1, 2}) Set(tensor, std::vector<float>(6));
    EXPECT_EQ(Finish(0), KUMO_OK) << kumo_error();
  });
  EXPECT_EQ(blocks, (std::map<int64_t, int>{{0, 4}, {1, 2}, {2, 4}, {3, 2}}));
}

// The variables of `kumo launch`.
TEST_F(KumoWorkerTest, TheIdleMarkExistsUnlessItIsAWorkerOrTheJobIsComplete) {
  Set("sync.mode", "gradient");
  const std::string mark = scratch_ / "idle";
  setenv(kIdleMark, mark.c_str(), 1);
  SetIdleMark(mark);
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  EXPECT_FALSE(std::filesystem::exists(mark));
  kumo_worker_close(std::exchange(worker_, nullptr));
  EXPECT_TRUE(std::filesystem::exists(mark));
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  unsetenv(kIdleMark);
  Run([&](const kumo_work&) {
    for (const int tensor : {0, 1, 2}) Set(tensor, std::vector<float>(6));
    EXPECT_EQ(Finish(0), KUMO_OK) << kumo_error();
  });
  kumo_worker_close(std::exchange(worker_, nullptr));
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(KumoWorkerTest, TheIdleMarkExistsAfterAnErrorUnlessTheWorkerOrTheJobWasToEnd) {
  Set("sync.mode", "gradient");
  Set("job.epochs", "1000");
  ends_with_ = StatusCode::kUnavailable;  // it is stopped
  const std::string mark = scratch_ / "idle";
  setenv(kIdleMark, mark.c_str(), 1);
  const auto compute = [&](int kind) {
    for (const int tensor : {0, 1, 2}) {
      if (kind == KUMO_WORK_TRAIN) Set(tensor, std::vector<float>(6));
    }
    EXPECT_EQ(Finish(0), KUMO_OK) << kumo_error();
  };
  const auto ends = [&](auto end) {
    ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
    ASSERT_EQ(Next().kind, KUMO_WORK_TRAIN) << kumo_error();
    end();
    for (kumo_work work = Next(); next_ == KUMO_OK && work.kind < KUMO_WORK_DONE; work = Next()) {
      compute(work.kind);
    }
    EXPECT_FALSE(std::filesystem::exists(mark));
    kumo_worker_close(std::exchange(worker_, nullptr));
  };
  ends([&] { EXPECT_EQ(kumo_worker_fail(worker_, KUMO_UNAVAILABLE, "no memory"), KUMO_OK); });
  EXPECT_EQ(next_, KUMO_UNAVAILABLE);
  EXPECT_TRUE(std::filesystem::exists(mark));
  ends([&] {
    EXPECT_EQ(kumo_worker_leave(worker_), KUMO_OK);
    compute(KUMO_WORK_TRAIN);
  });
  EXPECT_EQ(next_, KUMO_OK) << kumo_error();
  EXPECT_FALSE(std::filesystem::exists(mark));
  ends([&] {
    StopServer();
    compute(KUMO_WORK_TRAIN);
  });
  unsetenv(kIdleMark);
  EXPECT_EQ(next_, KUMO_UNAVAILABLE);
  EXPECT_THAT(kumo_error(), HasSubstr("the job was stopped and saved"));
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(KumoWorkerTest, ARelativeAddressIsFoundFromAnotherWorkingFolder) {
  Set("sync.mode", "gradient");
  Set("cluster.servers", "ipc://server");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch_.path());
  setenv("KUMO_FOLDER", scratch_.path().c_str(), 1);
  StartServer();
  while (!std::filesystem::exists(scratch_ / "server")) std::this_thread::yield();
  std::filesystem::current_path("/");
  EXPECT_EQ(Open(), KUMO_OK) << kumo_error();
  unsetenv("KUMO_FOLDER");
  Run([&](const kumo_work&) {
    for (const int tensor : {0, 1, 2}) Set(tensor, std::vector<float>(6));
    EXPECT_EQ(Finish(0), KUMO_OK) << kumo_error();
  });
  std::filesystem::current_path(before);
}

TEST_F(KumoWorkerTest, AGivenBackBlockIsComputedAgainAndMisuseHasAnError) {
  Set("sync.mode", "gradient");
  ends_with_ = StatusCode::kOutOfRange;
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  kumo_worker* const opened = worker_;
  EXPECT_EQ(Open(), KUMO_FAILED_PRECONDITION);
  EXPECT_THAT(kumo_error(), HasSubstr("has a worker already"));
  EXPECT_EQ(worker_, opened);
  const kumo_work first = Next();
  ASSERT_EQ(first.kind, KUMO_WORK_TRAIN);
  float number = 0;
  EXPECT_EQ(kumo_worker_get(worker_, 4, &number), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_get(nullptr, 0, &number), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_next(worker_, 0, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_samples(worker_, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_learning_rate(worker_, 0, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_states(worker_, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_get(worker_, 0, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_set(worker_, 0, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_get_state(worker_, 0, 0, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_set_state(worker_, 0, 0, nullptr), KUMO_INVALID_ARGUMENT);
  EXPECT_EQ(kumo_worker_fail(worker_, KUMO_UNAVAILABLE, nullptr), KUMO_INVALID_ARGUMENT);
#ifndef KUMO_SANITIZED
  const pid_t child = fork();
  if (child == 0) {
    kumo_work work;
    const bool refused = kumo_worker_next(worker_, 0, &work) == KUMO_FAILED_PRECONDITION &&
                         std::string_view(kumo_error()).starts_with("this process was forked");
    kumo_worker_close(worker_);
    kumo_worker_options options = {};
    options.size = sizeof options;
    kumo_worker* own = nullptr;  // it may have
    const bool may = kumo_worker_open(&options, &own) == KUMO_FAILED_PRECONDITION &&
                     std::string_view(kumo_error()).starts_with("no experiment file is named");
    _exit(refused && may ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
#endif
  EXPECT_EQ(kumo_worker_fail(worker_, KUMO_UNAVAILABLE, "its disk is on fire"), KUMO_OK);
  Next();
  EXPECT_EQ(next_, KUMO_UNAVAILABLE);
  EXPECT_THAT(kumo_error(), HasSubstr("on fire"));
  EXPECT_EQ(kumo_exit_code(next_), 75);
  EXPECT_EQ(kumo_worker_get(worker_, 0, &number), KUMO_ABORTED);
  kumo_worker_close(std::exchange(worker_, nullptr));

  // Another worker gets the same block; a number that is not finite ends the job.
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  const kumo_work again = Next();
  ASSERT_EQ(again.kind, KUMO_WORK_TRAIN) << kumo_error();
  EXPECT_EQ(again.round, first.round);
  EXPECT_EQ(again.seed, first.seed);
  Set(0, {1, 1, std::numeric_limits<float>::quiet_NaN(), 1, 1, 1});
  Set(1, {0, 0});
  Set(2, {0, 0});
  EXPECT_EQ(Finish(0), KUMO_OK) << kumo_error();
  Next();
  EXPECT_EQ(next_, KUMO_OUT_OF_RANGE);
  EXPECT_THAT(kumo_error(), HasSubstr("tensor layer.weight has become"));
}

// Call of kumo_worker_next by another thread, with a timeout of days.
class LongCall {
 public:
  explicit LongCall(kumo_worker* worker)
      : thread_([this, worker] {
          do {
            status_ = kumo_worker_next(worker, std::numeric_limits<int32_t>::max(), &work_);
            error_ = kumo_error();
          } while (IsOther(status_, error_));
          returned_ = true;
        }) {
    // The call is in progress when a second one is refused.
    int32_t count = 0;
    while (!returned_ && !IsOther(kumo_worker_states(worker, &count), kumo_error())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ~LongCall() { Join(); }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Valid after Join.
  kumo_status status() const { return status_; }
  const std::string& error() const { return error_; }
  const kumo_work& work() const { return work_; }

  // Whether a call was refused because another thread's call was in progress.
  static bool IsOther(kumo_status status, std::string_view error) {
    return status == KUMO_FAILED_PRECONDITION && error.starts_with("another thread is in a call");
  }

 private:
  kumo_status status_ = KUMO_OK;
  std::string error_;
  kumo_work work_ = {};
  std::atomic<bool> returned_{false};
  std::thread thread_;
};

TEST_F(KumoWorkerTest, CloseEndsTheCallOfAnotherThread) {
  std::thread([] {}).join();  // the thread sanitizer starts one of its own at the first
  const int before = ThreadsOfThisProcess();
  WriteExperiment();  // no server: no work comes
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  LongCall call(worker_);
  kumo_worker* const closed = worker_;
  kumo_worker_close(worker_);
  call.Join();
  EXPECT_EQ(call.status(), KUMO_FAILED_PRECONDITION);
  EXPECT_THAT(call.error(), HasSubstr("the worker is closed"));
  ExpectThreads(before);
  // The closed worker stays valid, so that a thread may be about to use it.
  kumo_work work = {};
  EXPECT_EQ(kumo_worker_next(closed, 0, &work), KUMO_FAILED_PRECONDITION);
  EXPECT_THAT(kumo_error(), HasSubstr("the worker is closed"));
  EXPECT_EQ(kumo_worker_leave(closed), KUMO_FAILED_PRECONDITION);
  kumo_worker_close(closed);
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  kumo_worker_close(closed);
  EXPECT_NE(worker_, closed);
  EXPECT_EQ(kumo_worker_next(worker_, 0, &work), KUMO_OK) << kumo_error();
}

TEST_F(KumoWorkerTest, LeaveEndsTheCallOfAnotherThread) {
  WriteExperiment();
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  LongCall call(worker_);
  float number = 0;
  EXPECT_TRUE(LongCall::IsOther(kumo_worker_get(worker_, 0, &number), kumo_error()));
  EXPECT_EQ(kumo_worker_leave(worker_), KUMO_OK) << kumo_error();
  call.Join();
  EXPECT_EQ(call.status(), KUMO_OK) << call.error();
  EXPECT_EQ(call.work().kind, KUMO_WORK_LEFT);
}

TEST_F(KumoWorkerTest, WorkThatAnotherThreadComputesIsGivenBackByClose) {
  Set("sync.mode", "gradient");
  ends_with_ = StatusCode::kUnavailable;  // it is stopped
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  ASSERT_EQ(Next().kind, KUMO_WORK_TRAIN) << kumo_error();
  std::atomic<bool> reads{false};
  std::thread reader([&] {
    std::vector<float> weights(6);
    kumo_status status = KUMO_OK;
    while (status == KUMO_OK || status == KUMO_ABORTED) {
      status = kumo_worker_get(worker_, 0, weights.data());
      reads = true;
    }
    EXPECT_EQ(status, KUMO_FAILED_PRECONDITION);
    EXPECT_THAT(kumo_error(), HasSubstr("the worker is closed"));
  });
  while (!reads) std::this_thread::yield();
  std::thread second([this] { kumo_worker_close(worker_); });
  kumo_worker_close(worker_);
  second.join();
  reader.join();
  ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
  EXPECT_EQ(Next().kind, KUMO_WORK_TRAIN) << kumo_error();
}

// For the thread sanitizer.
TEST_F(KumoWorkerTest, CallsOfManyThreadsEndWithErrorsAtMost) {
  Set("sync.mode", "gradient");
  ends_with_ = StatusCode::kUnavailable;  // it is stopped
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(Open(), KUMO_OK) << kumo_error();
    std::atomic<int> begun{0};
    const auto call = [&](int which) {
      std::vector<float> numbers(6);
      kumo_work work = {};
      kumo_status status = KUMO_OK;
      for (int i = 0; i < 1000; ++i) {
        if (which == 0) status = kumo_worker_next(worker_, 20, &work);
        if (which == 1) status = kumo_worker_get(worker_, 0, numbers.data());
        if (which == 2) status = kumo_worker_set(worker_, 0, numbers.data());
        if (which == 3 && i == 10) status = kumo_worker_leave(worker_);
        if (which == 3 && i == 20) kumo_worker_fail(worker_, KUMO_UNAVAILABLE, "no memory");
        if (i == 0) ++begun;
        if (status != KUMO_OK &&
            std::string_view(kumo_error()).starts_with("the worker is closed")) {
          break;
        }
      }
    };
    std::vector<std::thread> threads;
    for (int which = 0; which < 4; ++which) threads.emplace_back(call, which);
    while (begun < 4) std::this_thread::yield();
    kumo_worker_close(worker_);
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(KumoWeights, WithoutThemThereIsNothing) {
  kumo_weights* weights = nullptr;
  EXPECT_EQ(kumo_weights_open("/nowhere", &weights), KUMO_NOT_FOUND);
  EXPECT_EQ(kumo_weights_count(weights), 0);
  EXPECT_EQ(kumo_weights_name(weights, 0), nullptr);
  const int64_t* shape = nullptr;
  EXPECT_EQ(kumo_weights_shape(weights, 0, &shape), 0);
  kumo_weights_get(weights, 0, nullptr);
  kumo_weights_close(weights);
}

TEST(KumoWorker, AnArrayOfTheOptionsThatIsNullIsRefused) {
  kumo_worker_options options = {};
  options.size = sizeof options;
  options.tensors_count = 1;
  kumo_worker* worker = nullptr;
  EXPECT_EQ(kumo_worker_open(&options, &worker), KUMO_INVALID_ARGUMENT);
  EXPECT_THAT(kumo_error(), HasSubstr("array"));
}

}  // namespace
}  // namespace kumo
