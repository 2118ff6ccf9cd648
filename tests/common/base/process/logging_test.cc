#include "common/base/process/logging.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LoggingTest : public ::testing::Test {
 protected:
  LogSettings Settings() { return {"logging_test", folder_ + "/out/logs", "worker", "3", true}; }
  const test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_.path();
};

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(LoggingTest, OneFileNamedAfterRoleRankAndHostHoldsEverything) {
  testing::internal::CaptureStderr();
  {
    const auto logging = Logging::Start(Settings());
    ASSERT_TRUE(logging.ok()) << logging.status().message();
    EXPECT_EQ((*logging)->file(), folder_ + "/out/logs/worker-3." + HostName() + ".log");
    LOG(INFO) << "something small";
    LOG(WARNING) << "something odd";
  }
  const std::string on_stderr = testing::internal::GetCapturedStderr();
  EXPECT_THAT(on_stderr, HasSubstr("something odd"));
  EXPECT_THAT(on_stderr, Not(HasSubstr("something small")));
  const std::string log = Read(folder_ + "/out/logs/worker-3." + HostName() + ".log");
  EXPECT_THAT(log, HasSubstr("worker-3@" + HostName() + " I"));
  EXPECT_THAT(log, HasSubstr("something small"));
  EXPECT_THAT(log, HasSubstr("something odd"));
  // And nothing of glog's own beside it.
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/out/logs")) {
    files += entry.exists() ? 1 : 0;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(LoggingTest, AFifoInTheFilesPlaceIsNamedAtOnce) {
  std::filesystem::create_directories(folder_ + "/out/logs");
  const std::string log = folder_ + "/out/logs/worker-3." + HostName() + ".log";
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const auto logging = Logging::Start(Settings());
  ASSERT_FALSE(logging.ok());
  EXPECT_THAT(logging.status().message(), HasSubstr("cannot write the log: " + log + " is a FIFO"));
}

TEST_F(LoggingTest, ACommandSaysWhatItWarnsOfInALine) {
  testing::internal::CaptureStderr();
  {
    const auto logging = Logging::ForCommand("logging_test");
    LOG(INFO) << "something small";
    LOG(WARNING) << "something odd";
    LOG(ERROR) << "something bad";
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: something odd\nerror: something bad\n");
}

TEST_F(LoggingTest, ARestartedProcessGoesOnInItsFile) {
  for (const char* message : {"first life", "second life"}) {
    const auto logging = Logging::Start(Settings());
    ASSERT_TRUE(logging.ok());
    LOG(INFO) << message;
  }
  const std::string log = Read(folder_ + "/out/logs/worker-3." + HostName() + ".log");
  EXPECT_THAT(log, HasSubstr("first life"));
  EXPECT_THAT(log, HasSubstr("second life"));
}

TEST_F(LoggingTest, FolderThatCannotBeMadeIsNamed) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/out") << "a file where the folder should be";
  const auto logging = Logging::Start(Settings());
  EXPECT_EQ(logging.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(logging.status().message(), HasSubstr(folder_ + "/out/logs"));
}

}  // namespace
}  // namespace kumo
