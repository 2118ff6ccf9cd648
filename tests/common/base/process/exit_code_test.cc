#include "common/base/process/exit_code.h"

#include <gtest/gtest.h>

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
}  // namespace kumo
