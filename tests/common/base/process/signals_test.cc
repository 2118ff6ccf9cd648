#include "common/base/process/signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include <thread>

namespace kumo {
namespace {

using ::testing::ElementsAre;

bool Readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

TEST(StopSignals, SignalsBecomeReadableInOrderAndAreGivenOutOnce) {
  StopSignals signals;
  EXPECT_FALSE(Readable(signals.fd()));
  raise(SIGTERM);
  raise(SIGINT);
  EXPECT_TRUE(Readable(signals.fd()));
  EXPECT_THAT(signals.Take(), ElementsAre(SIGTERM, SIGINT));
  EXPECT_FALSE(Readable(signals.fd()));
  EXPECT_THAT(signals.Take(), ElementsAre());
}

TEST(StopSignals, SignalOfAnotherThreadIsSeen) {
  StopSignals signals;
  std::thread([] { raise(SIGTERM); }).join();
  EXPECT_THAT(signals.Take(), ElementsAre(SIGTERM));
}

TEST(StopSignals, AFloodOfUnreadSignalsDoesNotBlock) {
  StopSignals signals;
  for (int i = 0; i < 100000; ++i) raise(SIGINT);
  EXPECT_GE(signals.Take().size(), 1u);
}

TEST(StopSignals, WritingToAClosedPipeIsAnErrorAndNotDeath) {
  StopSignals signals;
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  close(fds[0]);
  EXPECT_EQ(write(fds[1], "x", 1), -1);
  close(fds[1]);
}

TEST(StopSignals, AFileThatMayNotBecomeLongerIsAnErrorAndNotDeath) {
  FILE* const file = tmpfile();
  ASSERT_NE(file, nullptr);
  const int fd = fileno(file);
  const pid_t child = fork();
  if (child == 0) {
    const StopSignals signals;
    const rlimit limit{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    _exit(write(fd, "x", 1) == -1 && errno == EFBIG ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  fclose(file);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StopSignals, IgnoredHangUpStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    StopSignals signals;
    raise(SIGHUP);
    EXPECT_THAT(signals.Take(), ElementsAre());
  }
  std::signal(SIGHUP, SIG_DFL);
}

TEST(StopSignals, ASignalAtTheVeryEndChangesNothing) {
  { StopSignals signals; }
  raise(SIGTERM);  // would else kill this process: an exit code that nobody decided on
  raise(SIGINT);
  StopSignals again;  // a second one may live now, and has none of those
  EXPECT_THAT(again.Take(), ElementsAre());
  raise(SIGTERM);
  EXPECT_THAT(again.Take(), ElementsAre(SIGTERM));
}

TEST(SignalName, NamesCommonSignals) {
  EXPECT_STREQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_STREQ(SignalName(64), "unknown signal");
}

}  // namespace
}  // namespace kumo
