#include "cli/machine_memory.h"

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
  EXPECT_EQ(AvailableMemory(root_).value(), 2000u * 1024);
}

TEST_F(MachineMemoryTest, AControlGroupsLimitCountsWithoutTheCacheThatCanBeDropped) {
  Write("/proc/self/cgroup", "0::/pod/main\n");
  Write("/sys/fs/cgroup/pod/main/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/pod/main/memory.current", "700000\n");
  Write("/sys/fs/cgroup/pod/main/memory.stat", "anon 5\ninactive_file 100000\n");
  EXPECT_EQ(AvailableMemory(root_).value(), 400000u);
}

TEST_F(MachineMemoryTest, AContainerSeesItsGroupAtTheTop) {
  Write("/proc/self/cgroup", "0::/somewhere/else\n");
  Write("/sys/fs/cgroup/memory.max", "1000\n");
  Write("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(AvailableMemory(root_).value(), 0u);
}

TEST_F(MachineMemoryTest, AGroupWithoutALimitChangesNothing) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  Write("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(AvailableMemory(root_).value(), 2000u * 1024);
}

TEST_F(MachineMemoryTest, AMachineThatDoesNotSayIsAnError) {
  std::filesystem::remove_all(root_ + "/proc");
  EXPECT_EQ(AvailableMemory(root_).status().code(), StatusCode::kNotFound);
}

TEST(AvailableMemory, OfThisMachineIsKnown) { EXPECT_GT(AvailableMemory().value(), 1u << 20); }

}  // namespace
}  // namespace kumo
