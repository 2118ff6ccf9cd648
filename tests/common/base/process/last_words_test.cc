#include "common/base/process/last_words.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class LastWordsTest : public ::testing::Test {
 protected:
  const test::ScratchDirectory scratch_;
  const std::string log_ = scratch_ / "termination-log";
};

TEST_F(LastWordsTest, OneLineGoesToStderrAndTheTerminationLog) {
  std::ofstream(log_) << "what was there before, and longer than the line that replaces it";
  testing::internal::CaptureStderr();
  const int code = LastWords("kumo-worker worker-1", log_).Say(FailedPrecondition("no\nnetwork"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kumo-worker worker-1: no; network\n");
  EXPECT_EQ(code, 78);
  EXPECT_EQ(Read(log_), "kumo-worker worker-1: no; network\n");
}

TEST_F(LastWordsTest, OnATerminalTheLineIsBrokenAndInTheLogItIsNot) {
  testing::internal::CaptureStderr();
  (void)LastWords("kumo", log_, 20).Say(ExitCode::kUsage, "one two three four five");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kumo: one two three\n    four five\n");
  EXPECT_EQ(Read(log_), "kumo: one two three four five\n");
}

TEST_F(LastWordsTest, SuccessSaysNothing) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(LastWords("kumo", log_).Say(OkStatus()), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(Read(log_), "");
}

TEST_F(LastWordsTest, WhatAProcessThatIsDoneLeavesGoesToTheTerminationLogAlone) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(LastWords("kumo", log_).Leave(""), 0);
  EXPECT_EQ(Read(log_), "");
  EXPECT_EQ(LastWords("kumo", log_).Leave("the model is here"), 0);
  EXPECT_EQ(LastWords("kumo", "").Leave("the model is here"), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(Read(log_), "kumo: the model is here\n");
}

TEST_F(LastWordsTest, TerminationLogThatCannotBeWrittenChangesNothing) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(LastWords("kumo", "/no/such/folder/log").Say(ExitCode::kUsage, "what?"), 64);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kumo: what?\n");
}

TEST_F(LastWordsTest, VeryLongWordsAreCutToWhatKubernetesKeeps) {
  testing::internal::CaptureStderr();
  (void)LastWords("kumo", log_).Say(ExitCode::kCrashed, std::string(100000, 'x'));
  (void)testing::internal::GetCapturedStderr();
  EXPECT_LE(Read(log_).size(), 4096u);
}

TEST_F(LastWordsTest, TheLauncherNamesTheTerminationLog) {
  setenv("KUMO_TERMINATION_LOG", log_.c_str(), 1);
  EXPECT_EQ(LastWords::DefaultTerminationLog(), log_);
  unsetenv("KUMO_TERMINATION_LOG");
}

}  // namespace
}  // namespace kumo
