
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "common/base/process/exit_report.h"
#include "tests/scratch_directory.h"

namespace kumo {

namespace {

TEST(ExitCode, NumbersAreTheDocumentedOnes) {
  EXPECT_EQ(static_cast<int>(ExitCode::kDone), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::kCrashed), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 64);
  EXPECT_EQ(static_cast<int>(ExitCode::kUnavailable), 75);
  EXPECT_EQ(static_cast<int>(ExitCode::kBadConfiguration), 78);
}

TEST(ExitCode, TellsWhetherToStartAgain) {
  EXPECT_EQ(ExitCodeOf(OkStatus()), ExitCode::kDone);
  EXPECT_EQ(ExitCodeOf(Unavailable("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(Aborted("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(ResourceExhausted("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(InvalidArgument("")), ExitCode::kBadConfiguration);
  EXPECT_EQ(ExitCodeOf(FailedPrecondition("")), ExitCode::kBadConfiguration);
  EXPECT_EQ(ExitCodeOf(NotFound("")), ExitCode::kBadConfiguration);
  EXPECT_EQ(ExitCodeOf(DataLoss("")), ExitCode::kBadConfiguration);
  EXPECT_EQ(ExitCodeOf(Internal("")), ExitCode::kCrashed);
}

TEST(ExitCode, TextExplainsKnownCodesAndPassesOthers) {
  EXPECT_EQ(ExitCodeText(78), "78 (bad configuration)");
  EXPECT_EQ(ExitCodeText(3), "3");
}

}  // namespace

namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ExitReporterTest : public ::testing::Test {
 protected:
  const test::ScratchDirectory scratch_;
  const std::string log_ = scratch_ / "termination-log";
};

// A script that reads the file would take half an answer for the whole one.
TEST_F(ExitReporterTest, WhatCouldNotBePrintedIsNoSuccess) {
  const ExitReporter reporter("kumo", log_);
  const auto print = [&](const char* path) {
    if (std::freopen(path, "w", stdout) == nullptr) _exit(1);
    std::fputs("an answer\n", stdout);
    std::exit(reporter.ReportPrinted(0));
  };
  EXPECT_EXIT(print("/dev/full"), testing::ExitedWithCode(75), "kumo: .*written to stdout");
  EXPECT_EXIT(print("/dev/null"), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(print((scratch_ / "answer").c_str()), testing::ExitedWithCode(0), "^$");
  EXPECT_EQ(Read(scratch_ / "answer"), "an answer\n");
}

TEST_F(ExitReporterTest, OneLineGoesToStderrAndTheTerminationLog) {
  std::ofstream(log_) << "what was there before, and longer than the line that replaces it";
  testing::internal::CaptureStderr();
  const int code =
      ExitReporter("kumo-worker worker-1", log_).Report(FailedPrecondition("no\nnetwork"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kumo-worker worker-1: no; network\n");
  EXPECT_EQ(code, 78);
  EXPECT_EQ(Read(log_), "kumo-worker worker-1: no; network\n");
}

TEST_F(ExitReporterTest, OnATerminalTheLineIsBrokenAndInTheLogItIsNot) {
  testing::internal::CaptureStderr();
  (void)ExitReporter("kumo", log_, 20).Report(ExitCode::kUsage, "one two three four five");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kumo: one two three\n    four five\n");
  EXPECT_EQ(Read(log_), "kumo: one two three four five\n");
}

TEST_F(ExitReporterTest, AProgramThatACommandRunsHasTheCommandsName) {
  EXPECT_EQ(ExitReporter::StartedAs("kumo-worker"), "kumo-worker");
  setenv("KUMO_STARTED_AS", "kumo import", 1);
  EXPECT_EQ(ExitReporter::StartedAs("kumo-worker"), "kumo import");
  unsetenv("KUMO_STARTED_AS");
}

TEST_F(ExitReporterTest, SuccessSaysNothing) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ExitReporter("kumo", log_).Report(OkStatus()), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(Read(log_), "");
}

TEST_F(ExitReporterTest, WhatAProcessThatIsDoneLeavesGoesToTheTerminationLogAlone) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ExitReporter("kumo", log_).ReportDone(""), 0);
  EXPECT_EQ(Read(log_), "");
  EXPECT_EQ(ExitReporter("kumo", log_).ReportDone("the model is here"), 0);
  EXPECT_EQ(ExitReporter("kumo", "").ReportDone("the model is here"), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(Read(log_), "kumo: the model is here\n");
}

TEST_F(ExitReporterTest, TerminationLogThatCannotBeWrittenChangesNothing) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ExitReporter("kumo", "/no/such/folder/log").Report(ExitCode::kUsage, "what?"), 64);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kumo: what?\n");
}

TEST_F(ExitReporterTest, VeryLongWordsAreCutToWhatKubernetesKeeps) {
  testing::internal::CaptureStderr();
  (void)ExitReporter("kumo", log_).Report(ExitCode::kCrashed, std::string(100000, 'x'));
  (void)testing::internal::GetCapturedStderr();
  EXPECT_LE(Read(log_).size(), 4096u);
}

TEST_F(ExitReporterTest, TheLauncherNamesTheTerminationLog) {
  setenv("KUMO_TERMINATION_LOG", log_.c_str(), 1);
  EXPECT_EQ(ExitReporter::DefaultTerminationLog(), log_);
  unsetenv("KUMO_TERMINATION_LOG");
}

}  // namespace

}  // namespace kumo
