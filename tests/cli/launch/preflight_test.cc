#include "cli/launch/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "cli/launch/server_addresses.h"
#include "common/base/address.h"
#include "common/base/process/output_lock.h"
#include "common/checkpoint/checkpoint.h"
#include "common/settings/experiment_text.h"
#include "common/tensor_files/tensor_file.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class FullDisk : public PosixFileSystem {
 public:
  Status CheckWritable(const std::string&) override { return OkStatus(); }
  Result<uint64_t> FreeBytes(const std::string&) override { return uint64_t{100} << 20; }
};

PlannedJob Job(const std::vector<std::string>& servers = {}) {
  PlannedJob job;
  job.loaded.experiment.cluster.servers = servers;
  if (!servers.empty()) job.servers = static_cast<int>(servers.size());
  return job;
}

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() { experiment_.output.directory = folder_ + "/out"; }
  Preflight Check() {
    Preflight result;
    PlannedJob job = Job();
    job.loaded.experiment = experiment_;
    CheckOutput(job, 0, &files_, &result);
    return result;
  }

  const test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_.path();
  Experiment experiment_;
  PosixFileSystem files_;
};

MATCHER_P(Says, matcher, "") {
  return ::testing::ExplainMatchResult(matcher, arg.message(), result_listener);
}

void OnlyAddresses(const PlannedJob& job, Preflight* result) {
  AddressTrial trial;
  CheckAddresses(job, &trial, result);
}

void OnlyPage(const PlannedJob& job, Preflight* result) {
  AddressTrial trial;
  CheckPage(job, &trial, result);
}

std::string NumberOf(const ReservedPort& port) {
  const std::string address = port.host_and_port();
  return address.substr(address.rfind(':') + 1);
}

TEST(CheckAddresses, TwoNamesOfOneAddressAreNoticed) {
  const ReservedPort reserved = ReservedPort::Take().value();
  const std::string port = NumberOf(reserved);
  PlannedJob job = Job({"tcp://127.0.0.1:" + port, "tcp://localhost:" + port});
  Preflight result;
  OnlyAddresses(job, &result);
  EXPECT_THAT(result.problems,
              ElementsAre(Says(HasSubstr("tcp://localhost:" + port +
                                         " and tcp://127.0.0.1:" + port + " are one address"))));
  job = Job({"tcp://127.0.0.1:" + port, "tcp://127.0.0.2:" + port});
  Preflight different;
  OnlyAddresses(job, &different);
  EXPECT_THAT(different.problems, IsEmpty());
}

TEST(CheckPage, TheAddressOfAServerIsNoticed) {
  const ReservedPort reserved = ReservedPort::Take().value();
  const std::string port = NumberOf(reserved);
  for (const char* host : {"127.0.0.1:", "localhost:", "*:"}) {
    PlannedJob job = Job({"tcp://127.0.0.1:" + port});
    job.loaded.experiment.http.address = host + port;
    Preflight result;
    AddressTrial trial;
    CheckAddresses(job, &trial, &result);
    CheckPage(job, &trial, &result);
    ASSERT_EQ(result.problems.size(), 1u) << host;
    EXPECT_EQ(result.problems[0].code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(result.problems[0].message(),
                AllOf(HasSubstr("http.address"), HasSubstr("are one address")));
  }
}

TEST(CheckAddresses, BusyPortIsNamedAndAFreeOnePasses) {
  const auto listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
  ASSERT_TRUE(listener.ok());
  const PlannedJob job = Job({listener->address.ToString()});
  Preflight busy;
  OnlyAddresses(job, &busy);
  ASSERT_EQ(busy.problems.size(), 1u);
  EXPECT_EQ(busy.problems[0].code(), StatusCode::kUnavailable);
  EXPECT_THAT(busy.problems[0].message(),
              AllOf(HasSubstr(listener->address.ToString()), HasSubstr("in use")));
  close(listener->fd);
  Preflight free;
  OnlyAddresses(job, &free);
  EXPECT_THAT(free.problems, IsEmpty());
  // And it was let go: a second look finds it free again.
  OnlyAddresses(job, &free);
  EXPECT_THAT(free.problems, IsEmpty());
}

TEST(CheckPage, AnAddressThatIsTakenIsNamedWithWhoSaidIt) {
  const auto listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
  ASSERT_TRUE(listener.ok());
  PlannedJob job = Job();
  const std::string address = "127.0.0.1:" + std::to_string(listener->address.port);
  job.loaded.experiment.http.address = address;
  job.loaded.origins["http.address"] = "mine.conf:7";
  Preflight busy;
  OnlyPage(job, &busy);
  ASSERT_EQ(busy.problems.size(), 1u);
  EXPECT_EQ(busy.problems[0].code(), StatusCode::kUnavailable);
  EXPECT_THAT(busy.problems[0].message(),
              AllOf(HasSubstr("mine.conf:7: http.address"), HasSubstr(address)));
  close(listener->fd);
  Preflight free;
  OnlyPage(job, &free);
  EXPECT_THAT(free.problems, IsEmpty());
  EXPECT_THAT(free.passed, ElementsAre("page at " + address + ": the address is free"));
}

TEST(CheckAddresses, AnotherMachinesAddressIsNotAProblem) {
  PlannedJob job = Job({"tcp://192.0.2.1:5555"});
  job.loaded.experiment.cluster.insecure = true;
  Preflight result;
  OnlyAddresses(job, &result);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_THAT(result.passed, ElementsAre(HasSubstr("another machine's")));
}

TEST(CheckAddresses, PortsThatWouldBePickedAreTried) {
  PlannedJob job = Job();
  job.servers = 3;
  Preflight result;
  OnlyAddresses(job, &result);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_THAT(result.passed, ElementsAre(HasSubstr("3 free ones on 127.0.0.1")));
}

TEST_F(FolderTest, FolderThatCannotBeMadeIsNamedAndNothingIsLeftBehind) {
  std::ofstream(folder_ + "/file") << "x";
  experiment_.output.directory = folder_ + "/file/out";
  EXPECT_THAT(Check().problems,
              ElementsAre(Says(HasSubstr("output.directory = " + folder_ + "/file/out"))));
  experiment_.output.directory = folder_ + "/new/out";
  EXPECT_THAT(Check().problems, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/new"));
}

TEST_F(FolderTest, TheFolderOfARunningJobIsRefusedAndALeftOneIsNot) {
  std::filesystem::create_directories(folder_ + "/out");
  auto running = OutputLock::Take(folder_ + "/out");
  ASSERT_TRUE(running.ok());
  const Preflight refused = Check();
  ASSERT_EQ(refused.problems.size(), 1u);
  EXPECT_EQ(refused.problems[0].code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.problems[0].message(), HasSubstr("another job is running"));
  running->reset();
  EXPECT_THAT(Check().problems, IsEmpty()) << "the lock's file is still there";
  EXPECT_TRUE(OutputLock::Take(folder_ + "/out").ok()) << "looking must not keep the lock";
}

TEST_F(FolderTest, LogsOrCheckpointsThatCannotBeWrittenAreNamed) {
  std::filesystem::create_directories(folder_ + "/out");
  for (const std::string folder : {"logs", "checkpoints"}) {
    std::ofstream(folder_ + "/out/" + folder) << "a file where the folder should be";
    EXPECT_THAT(Check().problems, ElementsAre(Says(HasSubstr("no " + folder + " can be written"))));
    std::filesystem::remove(folder_ + "/out/" + folder);
  }
}

TEST(CheckOutput, DiskMustHoldTheCheckpointsThatAreKeptAndOneMore) {
  FullDisk files;
  Preflight small, large;
  CheckOutput(Job(), 10'000, &files, &small);
  EXPECT_THAT(small.problems, IsEmpty());
  CheckOutput(Job(), 25'000'000, &files, &large);
  EXPECT_THAT(large.problems, ElementsAre(Says(HasSubstr("100 MiB free"))));
}

TEST(CheckDisk, CopiesOfOtherServersAndTheFinalModelCountIfTheyAreOnTheSameDisk) {
  FullDisk files;
  const auto needed = [&](const PlannedJob& job) {
    Preflight result;
    CheckDisk(job, 100'000'000, &files, &result);
    const std::string text = result.problems.at(0).message();
    return text.substr(text.find("free, ") + 6);
  };
  PlannedJob job = Job();
  job.loaded.experiment.checkpoint.keep = 3;
  job.loaded.experiment.checkpoint.best.clear();
  job.loaded.experiment.output.directory = "/";
  job.servers = 4;
  const std::string shared = needed(job);
  job.loaded.experiment.checkpoint.disks = CheckpointDisks::kPrivate;
  const std::string copied = needed(job);
  EXPECT_THAT(copied, HasSubstr("the copies of the other servers"));
  EXPECT_NE(copied.substr(0, 8), shared.substr(0, 8));
  job.loaded.experiment.checkpoint.disks = CheckpointDisks::kShared;
  EXPECT_EQ(needed(job), shared);
  job.loaded.experiment.output.final_model = "/model";
  EXPECT_THAT(needed(job), HasSubstr("the final model"));
  EXPECT_NE(needed(job).substr(0, 8), shared.substr(0, 8));
  job.loaded.experiment.output.final_model = "/proc/self";
  EXPECT_EQ(needed(job), shared);
}

TEST_F(FolderTest, AFinalModelThatHasNoPlaceIsNamedBeforeTheTraining) {
  std::ofstream(folder_ + "/file") << "x";
  experiment_.output.final_model = folder_ + "/file/model";
  Preflight result;
  CheckFinalModel(experiment_, 0, &files_, &result);
  EXPECT_THAT(result.problems,
              ElementsAre(Says(HasSubstr("output.final_model = " + folder_ + "/file/model"))));
  experiment_.output.final_model = folder_ + "/new/model";
  Preflight fine;
  CheckFinalModel(experiment_, 0, &files_, &fine);
  EXPECT_THAT(fine.problems, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/new"));
  FullDisk full;
  Preflight large;
  CheckFinalModel(experiment_, 25'000'000, &full, &large);
  EXPECT_THAT(large.problems, ElementsAre(Says(HasSubstr("100 MiB free"))));
}

class InitialWeightsTest : public FolderTest {
 protected:
  // The problems of a job that starts from this path.
  std::vector<Status> Problems(const std::string& from) {
    experiment_.network.initial_weights = from;
    Preflight result;
    CheckInitialWeights(experiment_, &files_, &result);
    return result.problems;
  }
  // Saves a checkpoint of this job, and returns its folder.
  std::string Save() {
    const std::string folder = folder_ + "/out/checkpoints";
    const ShardFileHeader header = {
        .fingerprint = 1, .version = 7, .generation = 1, .shard = 0, .shards = 1};
    const std::vector<float> numbers = {1, 2, 3};
    const auto saved =
        SaveShard(files_, folder, header, {7, {{StateKind::kStart, 0, 0, 0, nullptr, numbers}}});
    EXPECT_TRUE(saved.ok());
    checkpoint::Manifest manifest;
    manifest.set_experiment_text(ExperimentText(experiment_));
    manifest.set_fingerprint(1);
    manifest.set_generation(1);
    manifest.set_version(7);
    checkpoint::File* file = manifest.add_files();
    file->set_name(ShardFileName(0, 1, 1));
    file->set_bytes(saved->bytes);
    file->set_crc32c(saved->crc32c);
    EXPECT_TRUE(WriteManifest(files_, folder, manifest).ok());
    return JoinPath(folder, CheckpointName(7));
  }
};

TEST_F(InitialWeightsTest, AreNamedIfTheyAreMissingDamagedOrOfAnotherFormat) {
  const std::string setting = "network.initial_weights: ";
  EXPECT_THAT(Problems("net.pt"), ElementsAre(Says(AllOf(StartsWith(setting + "net.pt is neither"),
                                                         HasSubstr(".pt is PyTorch's format")))));
  EXPECT_THAT(Problems(folder_), ElementsAre(Says(StartsWith(setting + folder_ + " is neither"))));
  for (const std::string ending : {".safetensors", ".npz"}) {
    const std::string path = folder_ + "/net" + ending;
    EXPECT_THAT(Problems(path), ElementsAre(Says(AllOf(StartsWith(setting), HasSubstr(path)))));
    std::ofstream(path) << "no tensors";
    EXPECT_THAT(Problems(path), ElementsAre(Says(AllOf(StartsWith(setting), HasSubstr(path)))));
    const std::vector<float> numbers = {1, 2, 3};
    const NamedTensor tensor{"a", {3}, numbers};
    const TensorFormat format = TensorFormatOf(path).value();
    ASSERT_TRUE(WriteTensorFile(files_, path, format, std::span(&tensor, 1)).ok());
    EXPECT_THAT(Problems(path), IsEmpty());
  }
}

TEST_F(InitialWeightsTest, AreNotNeededByAJobThatResumes) {
  EXPECT_THAT(Problems("net.pt"), Not(IsEmpty()));
  const std::string checkpoint = Save();
  EXPECT_THAT(Problems("net.pt"), IsEmpty());
  EXPECT_THAT(Problems(folder_ + "/none.npz"), IsEmpty());
  experiment_.checkpoint.resume = FindResumeFrom("never").value();
  EXPECT_THAT(Problems("net.pt"), Not(IsEmpty()));
  EXPECT_THAT(Problems(checkpoint), IsEmpty());
}

TEST_F(InitialWeightsTest, OfOtherHostsAreJudgedByTheEndingAlone) {
  experiment_.cluster.servers = {"tcp://alpha:7700"};
  EXPECT_THAT(Problems("net.pt"), ElementsAre(Says(HasSubstr(".pt is PyTorch's format"))));
  for (const char* from : {"/there/net.safetensors", "/there/out"}) {
    EXPECT_THAT(Problems(from), IsEmpty()) << from;
  }
}

TEST_F(InitialWeightsTest, AreNotNamedTwice) {
  experiment_.network.initial_weights = "net.pt";
  Preflight result;
  for (int i = 0; i < 2; ++i) CheckInitialWeights(experiment_, &files_, &result);
  EXPECT_EQ(result.problems.size(), 1u);
}

TEST(NoteIdleProcesses, WorkersBeyondThePartitionsAreCounted) {
  PlannedJob job = Job();
  job.loaded.experiment.cluster.workers = 5;
  job.loaded.experiment.sync.partitions = 2;
  Preflight result;
  NoteIdleProcesses(job, /*chunks=*/0, &result);
  EXPECT_THAT(result.notes,
              ElementsAre(AllOf(HasSubstr("5 workers for 2 partitions: 3 would be idle spares"),
                                HasSubstr("--workers 2"))));
}

TEST(NoteIdleProcesses, NothingIsSaidOfProcessesThatAllHaveWork) {
  PlannedJob job = Job();
  job.loaded.experiment.cluster.workers = 2;
  job.loaded.experiment.sync.partitions = 2;
  job.servers = 2;
  Preflight result;
  NoteIdleProcesses(job, /*chunks=*/2, &result);
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(NoteIdleProcesses, ServersBeyondTheChunksAreCounted) {
  PlannedJob job = Job();
  job.servers = 3;
  Preflight result;
  NoteIdleProcesses(job, /*chunks=*/1, &result);
  EXPECT_THAT(result.notes, ElementsAre(AllOf(HasSubstr("3 servers for 1 chunk of the network"),
                                              HasSubstr("2 would hold nothing"))));
}

TEST(NoteIdleProcesses, AJobThatWouldWaitForOtherWorkersIsNamed) {
  PlannedJob job = Job();
  job.loaded.experiment.cluster.workers = 1;
  job.loaded.experiment.cluster.min_workers = 4;
  Preflight result;
  NoteIdleProcesses(job, /*chunks=*/0, &result);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("cluster.min_workers = 4")));
}

TEST(CheckMemory, AllWorkersAndTheServersMustFit) {
  PlannedJob job = Job();
  job.loaded.experiment.cluster.workers = 4;
  job.servers = 2;
  const JobSize size = {.parameters = 1000,
                        .chunks = 1,
                        .worker = {int64_t{300} << 20, "200 MiB for activations (sync.minibatch)"},
                        .server = {int64_t{20} << 20, "versions"}};
  Preflight fits, does_not;
  CheckMemory(job, size, {uint64_t{1240} << 20, "it"}, &fits);
  EXPECT_THAT(fits.problems, IsEmpty());
  CheckMemory(job, size, {uint64_t{1239} << 20, "it"}, &does_not);
  EXPECT_THAT(fits.passed, ElementsAre(AllOf(HasSubstr("4 workers of 300 MiB"),
                                             HasSubstr("2 servers of 20.0 MiB"))));
  ASSERT_THAT(
      does_not.problems,
      ElementsAre(Says(AllOf(
          HasSubstr(
              "for 4 workers (300 MiB each; most of it: 200 MiB for activations (sync.minibatch))"),
          HasSubstr("it has room for 1.21 GiB")))));
  EXPECT_EQ(ExitCodeOf(does_not.problems.front()), ExitCode::kBadConfiguration);
}

TEST(CheckProcessLimits, EachProcessMustBeAbleToOpenItsConnections) {
  PlannedJob job = Job();
  job.loaded.experiment.cluster.workers = 12;
  const SystemRoom enough{{1000, 1024}, {}};
  Preflight fits, does_not;
  CheckProcessLimits(job, enough, &fits);
  EXPECT_THAT(fits.problems, IsEmpty());
  EXPECT_THAT(fits.passed, ElementsAre(HasSubstr("limits: at most ")));
  CheckProcessLimits(job, {{24, 27}, {}}, &does_not);
  ASSERT_THAT(does_not.problems, Not(IsEmpty()));
  EXPECT_THAT(does_not.problems.front(),
              Says(AllOf(HasSubstr("a server needs up to "), HasSubstr("cluster.workers = 12"),
                         HasSubstr("limit of a process is 27"), HasSubstr("ulimit -n"))));
  EXPECT_EQ(ExitCodeOf(does_not.problems.front()), ExitCode::kBadConfiguration);
  EXPECT_THAT(does_not.passed, IsEmpty());
}

TEST(CheckProcessLimits, AllThreadsOfAMachineMustFitTogether) {
  PlannedJob job = Job();
  job.loaded.experiment.cluster.workers = 12;
  const SystemRoom room{{1000, 1024}, {18, "control group /pod (pids.max) allows 20"}};
  Preflight here, elsewhere;
  CheckProcessLimits(job, room, &here);
  EXPECT_THAT(here.problems,
              ElementsAre(Says(AllOf(HasSubstr("the job needs up to "), HasSubstr("12 workers of "),
                                     HasSubstr("pids.max"), HasSubstr("cluster.workers")))));
  // On several machines each process checks those of its own.
  job.loaded.experiment.cluster.servers = {"tcp://alpha:7700"};
  CheckProcessLimits(job, room, &elsewhere);
  EXPECT_THAT(elsewhere.problems, IsEmpty());
  EXPECT_THAT(elsewhere.passed, ElementsAre(Not(HasSubstr("threads"))));
}

TEST(NoteCores, MoreThreadsThanAContainersCoresAreNamed) {
  PlannedJob job = Job();
  job.loaded.experiment.network.threads = 4;
  Preflight enough, few;
  NoteCores(job.loaded.experiment, 4, &enough);
  EXPECT_THAT(enough.notes, IsEmpty());
  NoteCores(job.loaded.experiment, 2, &few);
  EXPECT_THAT(few.notes, ElementsAre(AllOf(HasSubstr("network.threads = 4, but 2 cores"))));
}

}  // namespace
}  // namespace kumo
