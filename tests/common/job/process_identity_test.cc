#include "common/job/process_identity.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(ProcessIdentity, TellsTwoProcessesOfOneMachineApartAndWhichIsLater) {
  const ProcessIdentity first = ThisProcess("here");
  const ProcessIdentity second = ThisProcess("here");
  EXPECT_EQ(first.host, "here");
  EXPECT_EQ(first.pid, getpid());
  EXPECT_NE(first.incarnation, second.incarnation);
  EXPECT_EQ(first.boot, second.boot);
  EXPECT_GT(first.started_ms, 0);
  EXPECT_LE(first.started_ms, second.started_ms);
}

}  // namespace
}  // namespace kumo
