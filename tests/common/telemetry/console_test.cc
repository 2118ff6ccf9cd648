#include "common/telemetry/console.h"

#include <unistd.h>

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

// As after `kumo launch FILE | head`.
TEST(FdConsole, AClosedPipeIsToldOnceAndStopsNobody) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  FdConsole console(ends[1]);
  close(ends[0]);
  testing::internal::CaptureStderr();
  console.Write("round 1\n");
  console.Write("round 2\n");
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t told = log.find("stdout is a closed pipe");
  EXPECT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("stdout is a closed pipe", told + 1), std::string::npos);
  close(ends[1]);
  std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace kumo
