#include "common/base/cores.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

class UsableCoresTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const test::ScratchDirectory scratch_;
  const std::string root_ = scratch_.path();
};

TEST_F(UsableCoresTest, WithoutAQuotaAreThoseOfTheAffinity) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  Write("/proc/self/cgroup", "0::/pod\n");
  Write("/sys/fs/cgroup/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCores(root_), CPU_COUNT(&set));
}

TEST_F(UsableCoresTest, AContainersQuotaCountsAndAFractionIsACore) {
  Write("/proc/self/cgroup", "0::/pod/main\n");
  Write("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
  Write("/sys/fs/cgroup/pod/main/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCores(root_), 1);
}

TEST_F(UsableCoresTest, SoDoesAQuotaOfVersion1) {
  Write("/proc/self/cgroup", "4:cpu,cpuacct:/pod\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us", "1000\n");
  Write("/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCores(root_), 1);
}

TEST(ReadingThreadsFor, IsOnePerCoreUpToEight) {
  EXPECT_EQ(ReadingThreadsFor(1), 1);
  EXPECT_EQ(ReadingThreadsFor(5), 5);
  EXPECT_EQ(ReadingThreadsFor(64), 8);
}

}  // namespace
}  // namespace kumo
