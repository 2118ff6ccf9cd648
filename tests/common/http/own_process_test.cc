#include "common/http/own_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <thread>

namespace kumo {
namespace {

TEST(OwnProcess, SaysWhatTheKernelSays) {
  const OwnProcess before = LookAtOwnProcess();
  ASSERT_TRUE(before.open_fds && before.max_fds && before.resident_bytes && before.virtual_bytes &&
              before.started_s && before.cpu_s);
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(*LookAtOwnProcess().open_fds, *before.open_fds + 1);
  close(fd);
  EXPECT_EQ(*LookAtOwnProcess().open_fds, *before.open_fds);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(*before.max_fds, static_cast<int64_t>(limit.rlim_cur));
  EXPECT_GT(*before.resident_bytes, 1 << 20);
  EXPECT_LT(*before.resident_bytes, *before.virtual_bytes);
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LT(*before.started_s, now + 2) << "of a kernel's ticks and of whole seconds";
  EXPECT_GT(*before.started_s, now - 86400);
}

TEST(OwnProcess, CpuTimeIsOfAllThreadsAndInSeconds) {
  const double before = *LookAtOwnProcess().cpu_s;
  // As much work as the process' own clock says takes a tenth of a second.
  const auto cpu = [] {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double until = cpu() + 0.1;
  std::thread([&] {
    while (cpu() < until) {
    }
  }).join();
  // The kernel counts in ticks of 10 ms.
  EXPECT_NEAR(*LookAtOwnProcess().cpu_s - before, cpu() - (until - 0.1), 0.05);
}

}  // namespace
}  // namespace kumo
