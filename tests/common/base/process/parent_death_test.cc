#include "common/base/process/parent_death.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace kumo {
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
