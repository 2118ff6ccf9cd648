
#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/memory_budget.h"
#include "tests/scratch_directory.h"

namespace kumo {

namespace {

class MachineMemoryTest : public ::testing::Test {
 protected:
  MachineMemoryTest() {
    Write("/proc/meminfo", "MemTotal:  4000000 kB\nMemFree:  1 kB\nMemAvailable:  2000 kB\n");
  }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const test::ScratchDirectory scratch_;
  const std::string root_ = scratch_.path();
};

TEST_F(MachineMemoryTest, IsWhatTheKernelSaysIsAvailable) {
  EXPECT_EQ(RoomOnMachine(root_).value().bytes, 2000u * 1024);
}

TEST_F(MachineMemoryTest, AControlGroupsLimitCountsWithoutTheCacheThatCanBeDropped) {
  Write("/proc/self/cgroup", "0::/pod/main\n");
  Write("/sys/fs/cgroup/pod/main/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/pod/main/memory.current", "700000\n");
  Write("/sys/fs/cgroup/pod/main/memory.stat", "anon 5\ninactive_file 100000\n");
  EXPECT_EQ(RoomOnMachine(root_).value().bytes, 400000u);
}

TEST_F(MachineMemoryTest, AContainerSeesItsGroupAtTheTop) {
  Write("/proc/self/cgroup", "0::/somewhere/else\n");
  Write("/sys/fs/cgroup/memory.max", "1000\n");
  Write("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(RoomOnMachine(root_).value().bytes, 0u);
}

TEST_F(MachineMemoryTest, AGroupWithoutALimitChangesNothing) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  Write("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(RoomOnMachine(root_).value().bytes, 2000u * 1024);
}

TEST_F(MachineMemoryTest, AMachineThatDoesNotSayIsAnError) {
  std::filesystem::remove_all(root_ + "/proc");
  EXPECT_EQ(RoomOnMachine(root_).status().code(), StatusCode::kNotFound);
}

TEST_F(MachineMemoryTest, AGroupAboveThatHasLessCounts) {
  Write("/proc/self/cgroup", "0::/pod/main\n");
  Write("/sys/fs/cgroup/pod/main/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/pod/main/memory.current", "0\n");
  Write("/sys/fs/cgroup/pod/memory.max", "500000\n");
  Write("/sys/fs/cgroup/pod/memory.current", "400000\n");
  const MemoryRoom room = RoomOnMachine(root_).value();
  EXPECT_EQ(room.bytes, 100000u);
  EXPECT_EQ(room.limit, "the limit of control group /pod");
}

TEST_F(MachineMemoryTest, ControlGroupsOfVersion1Count) {
  Write("/proc/self/cgroup", "9:cpu,cpuacct:/other\n4:memory:/pod\n0::/\n");
  Write("/sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "900000\n");
  Write("/sys/fs/cgroup/memory/pod/memory.usage_in_bytes", "500000\n");
  Write("/sys/fs/cgroup/memory/pod/memory.stat", "cache 1\ntotal_inactive_file 100000\n");
  EXPECT_EQ(RoomOnMachine(root_).value().bytes, 500000u);
}

TEST_F(MachineMemoryTest, ALimitOfAddressSpaceCountsForTheProcessAlone) {
  Write("/proc/self/status", "Name:\tx\nVmPeak:\t  900 kB\nVmSize:\t  100 kB\n");
  EXPECT_EQ(RoomInProcess(root_, 500 * 1024).value().bytes, 400u * 1024);
  EXPECT_EQ(RoomInProcess(root_, 50 * 1024).value().bytes, 0u);
  EXPECT_EQ(RoomInProcess(root_, UINT64_MAX).value().bytes, 2000u * 1024);
  EXPECT_EQ(RoomOnMachine(root_).value().bytes, 2000u * 1024);
}

TEST(RoomOnMachine, OfThisMachineIsKnown) {
  EXPECT_GT(RoomOnMachine().value().bytes, 1u << 20);
  EXPECT_GT(RoomInProcess().value().bytes, 1u << 20);
}

}  // namespace

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMib = int64_t{1} << 20;

TEST(SaturatingProduct, StaysAtTheLargestNumber) {
  EXPECT_EQ(SaturatingProduct({3, 4, 5}), 60);
  EXPECT_EQ(SaturatingProduct({}), 1);
  EXPECT_EQ(SaturatingProduct({int64_t{1} << 40, int64_t{1} << 40}), kMost);
  EXPECT_EQ(SaturatingProduct({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
}

TEST(MemoryNeed, AddsUpAndShowsTheLargestFirst) {
  MemoryNeed need("a worker");
  need.Add("weights", {2, kMib});
  need.Add("nothing", {0, 5}, "x.y");
  need.Add("minibatches", {10, 3, kMib}, "data.prefetch, sync.minibatch");
  EXPECT_EQ(need.bytes(), 32 * kMib);
  EXPECT_EQ(need.Head(), "a worker needs 32.0 MiB (33554432 bytes):");
  EXPECT_EQ(need.Table(0),
            "minibatches  30.0 MiB  data.prefetch, sync.minibatch\n"
            "weights      2.00 MiB\n");
  EXPECT_EQ(need.Table(44),
            "minibatches  30.0 MiB  data.prefetch,\n"
            "                       sync.minibatch\n"
            "weights      2.00 MiB\n");
}

TEST(MemoryNeed, ASumThatOverflowsIsTheLargestNumberAndFitsNowhere) {
  MemoryNeed need("a worker");
  need.Add("much", {kMost});
  need.Add("more", {kMost, 2});
  EXPECT_EQ(need.bytes(), kMost);
  EXPECT_FALSE(need.CheckFits({uint64_t{1} << 50, "it"}).ok());
}

TEST(MemoryNeed, ARefusalNamesBothAmountsAndTheSettingsThatCostMost) {
  MemoryNeed need("a worker");
  need.Add("minibatches", {900, kMib}, "sync.minibatch");
  need.Add("weights", {100, kMib}, "network.file");
  need.Add("a little", {24, kMib}, "job.seed");
  EXPECT_TRUE(need.CheckFits({static_cast<uint64_t>(1024 * kMib), "it"}).ok());
  const Status refused = need.CheckFits({static_cast<uint64_t>(1024 * kMib - 1), "the machine"});
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      refused.message(),
      AllOf(HasSubstr("a worker needs 1.00 GiB"), HasSubstr("the machine has room for"),
            HasSubstr("900 MiB for minibatches (sync.minibatch)"), Not(HasSubstr("job.seed"))));
}

}  // namespace

}  // namespace kumo
