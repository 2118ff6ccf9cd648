#include "cli/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/transport/address.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FullDisk : public PosixFileSystem {
 public:
  Status CheckWritable(const std::string&) override { return OkStatus(); }
  Result<uint64_t> FreeBytes(const std::string&) override { return uint64_t{100} << 20; }
};

TEST(CheckAddresses, BusyPortIsNamedAndAFreeOnePasses) {
  const auto listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
  ASSERT_TRUE(listener.ok());
  Experiment experiment;
  experiment.cluster.servers = {listener->address.ToString()};
  Preflight busy;
  CheckAddresses(experiment, &busy);
  ASSERT_EQ(busy.problems.size(), 1u);
  EXPECT_THAT(busy.problems[0], HasSubstr(listener->address.ToString()));
  EXPECT_THAT(busy.problems[0], HasSubstr("in use"));
  close(listener->fd);
  Preflight free;
  CheckAddresses(experiment, &free);
  EXPECT_THAT(free.problems, IsEmpty());
  // And it was let go: a second look finds it free again.
  CheckAddresses(experiment, &free);
  EXPECT_THAT(free.problems, IsEmpty());
}

TEST(CheckAddresses, AnotherMachinesAddressIsNotAProblem) {
  Experiment experiment;
  experiment.cluster.servers = {"tcp://192.0.2.1:5555"};
  experiment.cluster.insecure = true;
  Preflight result;
  CheckAddresses(experiment, &result);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_THAT(result.passed, ElementsAre(HasSubstr("another machine's")));
}

TEST(CheckOutput, FolderThatCannotBeMadeIsNamedAndNothingIsLeftBehind) {
  const std::string folder = ::testing::TempDir() + "preflight_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/file") << "x";
  PosixFileSystem files;
  Experiment experiment;
  experiment.output.directory = folder + "/file/out";
  Preflight bad;
  CheckOutput(experiment, 0, &files, &bad);
  EXPECT_THAT(bad.problems, ElementsAre(HasSubstr("output.directory = " + folder + "/file/out")));
  experiment.output.directory = folder + "/new/out";
  Preflight good;
  CheckOutput(experiment, 0, &files, &good);
  EXPECT_THAT(good.problems, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder + "/new"));
  std::filesystem::remove_all(folder);
}

TEST(CheckOutput, DiskMustHoldTheCheckpointsThatAreKeptAndOneMore) {
  FullDisk files;
  Experiment experiment;
  Preflight small, large;
  CheckOutput(experiment, 10'000, &files, &small);
  EXPECT_THAT(small.problems, IsEmpty());
  CheckOutput(experiment, 25'000'000, &files, &large);
  ASSERT_EQ(large.problems.size(), 1u);
  EXPECT_THAT(large.problems[0], HasSubstr("100.0 MiB free"));
}

TEST(CheckpointBytes, GrowWithEveryPartition) {
  Experiment one, two;
  one.sync.partitions = 1;
  two.sync.partitions = 2;
  EXPECT_EQ(CheckpointBytes(two, 1000) - CheckpointBytes(one, 1000), 3 * 4 * 1000);
}

}  // namespace
}  // namespace kumo
