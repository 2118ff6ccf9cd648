#include "common/base/process/standard_streams.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

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
}  // namespace kumo
