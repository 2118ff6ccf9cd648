
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "common/base/process/process_start.h"

namespace kumo {

namespace {

// In a child, which ends with 0 where every standard stream is open and no later file gets its
// number.
int AfterClosing(std::initializer_list<int> closed) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int fd : closed) close(fd);
    OpenStandardStreams();
    for (const int fd : {0, 1, 2}) {
      if (fcntl(fd, F_GETFD) != 0) _exit(1);  // open, and stays open in programs that are started
    }
    for (const int fd : closed) {
      if (write(fd, "x", 1) != 1) _exit(2);
    }
    _exit(open("/dev/null", O_RDONLY) > 2 ? 0 : 3);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(OpenStandardStreams, OpensThoseThatAreClosed) {
  EXPECT_EQ(AfterClosing({}), 0);
  EXPECT_EQ(AfterClosing({0}), 0);
  EXPECT_EQ(AfterClosing({1}), 0);
  EXPECT_EQ(AfterClosing({2}), 0);
  EXPECT_EQ(AfterClosing({0, 1}), 0);
  EXPECT_EQ(AfterClosing({0, 2}), 0);
  EXPECT_EQ(AfterClosing({0, 1, 2}), 0);
}

}  // namespace

namespace {

// A pipe that is at its end when every process that holds its write end is gone.
bool ClosesWithin(int fd, unsigned seconds) {
  alarm(seconds);  // ends the test where the promise is broken
  char byte;
  const bool closed = read(fd, &byte, 1) == 0;
  alarm(0);
  return closed;
}

TEST(DieWithParent, AChildEndsWhenItsParentIsKilled) {
  int alive[2], ready[2];
  ASSERT_EQ(pipe(alive), 0);
  ASSERT_EQ(pipe(ready), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t self = getpid();
    if (fork() == 0) {
      if (!DieWithParent(self, SIGKILL).ok()) _exit(1);
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }
    for (;;) pause();
  }
  close(alive[1]);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(ClosesWithin(alive[0], 20));
  close(alive[0]);
  close(ready[0]);
  close(ready[1]);
}

TEST(DieWithParent, AParentThatIsGoneAlreadyIsAnError) {
  const pid_t child = fork();
  if (child == 0) {
    // Not the parent's pid: as if it had died and somebody else had adopted us.
    _exit(DieWithParent(getppid() + 1, SIGKILL).code() == StatusCode::kAborted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace

}  // namespace kumo
