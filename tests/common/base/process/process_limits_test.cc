#include "common/base/process/process_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(RoomForThreads, IsWhatIsLeftOfTheTightestControlGroup) {
  const test::ScratchDirectory scratch;
  const std::string root = scratch.path();
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  };
  write("/proc/self/cgroup", "0::/pod/main\n");
  write("/sys/fs/cgroup/pod/main/pids.max", "max\n");
  write("/sys/fs/cgroup/pod/main/pids.current", "2\n");
  write("/sys/fs/cgroup/pod/pids.max", "20\n");
  write("/sys/fs/cgroup/pod/pids.current", "5\n");
  const ThreadRoom room = RoomForThreads(root);
  EXPECT_EQ(room.threads, 15);
  EXPECT_THAT(room.limit, AllOf(HasSubstr("/pod (pids.max) allows 20"), HasSubstr("5 are in use")));
}

TEST(RaiseSoftLimits, MakesTheSoftLimitsTheHardOnes) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RoomForDescriptors().limit, 64);
  EXPECT_LT(RoomForDescriptors().free, 64);
  RaiseSoftLimits();
  EXPECT_GE(RoomForDescriptors().limit, std::min<int64_t>(before.rlim_max, 1 << 20));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(RoomForDescriptorsOfChild, CountsTheDescriptorsThatAreNotClosedAtItsStart) {
  const int64_t before = RoomForDescriptorsOfChild().free;
  const int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(RoomForDescriptorsOfChild().free, before);
  const int passed_on = open("/dev/null", O_RDONLY);
  EXPECT_EQ(RoomForDescriptorsOfChild().free, before - 1);
  close(passed_on);
  close(closed);
  EXPECT_EQ(RoomForDescriptorsOfChild().free, before);
}

TEST(CheckDescriptors, NamesBothFiguresAndTheRemedy) {
  const ProcessNeed need{"server 0", 57, 6, "cluster.workers = 12"};
  EXPECT_TRUE(CheckDescriptors(need, {57, 60}).ok());
  const Status status = CheckDescriptors(need, {24, 27});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("server 0 needs up to 57"), HasSubstr("can open 24"),
                    HasSubstr("limit of a process is 27"), HasSubstr("cluster.workers = 12"),
                    HasSubstr("ulimit -n 4096;")));
  // The remedy suffices, with the descriptors that are in use.
  const Status many =
      CheckDescriptors({"server 0", 8190, 6, "cluster.workers = 4096"}, {4093, 4096});
  EXPECT_THAT(many.message(), HasSubstr("ulimit -n 16384;"));
}

TEST(CheckThreads, NamesBothFiguresAndTheRemedy) {
  EXPECT_TRUE(CheckThreads("the job", 1000, {}, "cluster.workers").ok());
  const ThreadRoom room{18, "control group /pod (pids.max) allows 20, and 2 are in use"};
  EXPECT_TRUE(CheckThreads("the job", 18, room, "cluster.workers").ok());
  const Status status = CheckThreads("the job", 19, room, "cluster.workers");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("the job needs up to 19"), HasSubstr(room.limit),
                                      HasSubstr("cluster.workers")));
}

}  // namespace
}  // namespace kumo
