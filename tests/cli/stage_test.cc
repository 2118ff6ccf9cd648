// kumo stage as a person or a pod runs it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StageTest : public KumoTest {
 protected:
  StageTest() {
    fs::create_directories(folder_ + "/source/below");
    std::ofstream(folder_ + "/source/labels") << "0 1 2";
    std::ofstream(folder_ + "/source/below/images") << std::string(3 << 20, 'i');
  }
  std::vector<std::string> Command(std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {"stage", folder_ + "/source", folder_ + "/scratch/set"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  Ended Stage(std::vector<std::string> more = {}) { return Run(Command(std::move(more)), false); }
};

TEST_F(StageTest, SaysWhatItDid) {
  Ended ended = Stage();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("/scratch/set: 2 files, 3.00 MiB; copied 2 of them in "));
  EXPECT_EQ(Read("scratch/set/labels"), "0 1 2");
  ended = Stage({"--quick"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, HasSubstr("; copied 0 of them\n"));
  std::ofstream(folder_ + "/scratch/set/labels") << "0 1 3";
  ended = Stage({"--jobs", "1"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.last_line,
              HasSubstr("set/labels had changed since it was staged; copied it again"));
  EXPECT_EQ(Read("scratch/set/labels"), "0 1 2");
}

// One pod of a node holds the lock, another one waits for it; the first one is killed.
TEST_F(StageTest, WhoeverComesSecondWaitsAndGoesOnWhenTheFirstIsKilled) {
  fs::create_directories(folder_ + "/scratch/set/.kumo-stage");
  const pid_t first = fork();
  if (first == 0) {
    const int fd =
        open((folder_ + "/scratch/set/.kumo-stage/.lock").c_str(), O_CREAT | O_RDWR, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) _exit(1);
    std::ofstream(folder_ + "/locked") << "yes";
    for (;;) pause();
  }
  Await("the lock", [&] { return fs::exists(folder_ + "/locked"); });
  Start(Command(), false);
  Await("the second one",
        [&] { return Read("kumo.out").find("waits for another") != std::string::npos; });
  EXPECT_FALSE(fs::exists(folder_ + "/scratch/set/labels"));
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Read("scratch/set/labels"), "0 1 2");
}

TEST_F(StageTest, StopsWhileItWaits) {
  fs::create_directories(folder_ + "/scratch/set/.kumo-stage");
  const int fd = open((folder_ + "/scratch/set/.kumo-stage/.lock").c_str(),
                      O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  Start(Command(), false);
  Await("it", [&] { return Read("kumo.out").find("waits for another") != std::string::npos; });
  Signal(SIGTERM);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_EQ(ended.last_line, "kumo stage: stopped by SIGTERM; call it again to resume");
  close(fd);
}

TEST_F(StageTest, WhatCannotBeIsRefused) {
  fs::create_directories(folder_ + "/scratch/set");
  std::ofstream(folder_ + "/scratch/set/thesis") << "mine";
  Ended ended = Stage();
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("has files that were not staged (thesis)"));
  EXPECT_FALSE(fs::exists(folder_ + "/scratch/set/.kumo-stage"));
  ended = Run({"stage", folder_ + "/source", folder_ + "/source/below/copy"}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("none inside the other"));
  ended = Run({"stage", "s3://bucket/set", folder_ + "/scratch"}, false);
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.last_line, HasSubstr("mount the bucket"));
  ended = Run({"stage", folder_ + "/none", folder_ + "/scratch/other"}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_FALSE(fs::exists(folder_ + "/scratch/other"));
}

}  // namespace
}  // namespace kumo
