#include "common/base/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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
}  // namespace kumo
