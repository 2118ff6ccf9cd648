#include "common/base/process/exit_report.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/base/thread_pool.h"

namespace kumo {
namespace {

// More than any machine maps.
constexpr size_t kVast = size_t{1} << 62;

TEST(OutOfMemoryDeathTest, AnArrayThatCannotBeHadEndsTheProcessWithOneLine) {
  EXPECT_EXIT(
      {
        const ExitReporter words("kumo-worker a", "");
        EndWhenOutOfResources(words);
        Buffer<float> buffer(kVast / sizeof(float));
      },
      testing::ExitedWithCode(75), "kumo-worker a: out of memory: ");
}

TEST(OutOfMemoryDeathTest, SoDoesNew) {
  EXPECT_EXIT(
      {
        const ExitReporter words("kumo-worker a", "");
        EndWhenOutOfResources(words);
        ::operator delete(::operator new(kVast));
      },
      testing::ExitedWithCode(75), "kumo-worker a: out of memory: ");
}

TEST(OutOfMemory, WithoutAHandlerAnArrayThrowsAsNewDoes) {
  EXPECT_THROW(Buffer<float>(kVast / sizeof(float)), std::bad_alloc);
}

// For a process without privileges, to which the limit of processes applies.
void AllowNoThread() {
  const rlimit none{0, 0};
  ASSERT_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
  constexpr uid_t kNobody = 65534;
  if (getuid() == 0) {
    ASSERT_EQ(setresuid(kNobody, kNobody, kNobody), 0);
  }
}

TEST(OutOfThreadsDeathTest, AThreadThatIsRefusedEndsTheProcessWithOneLine) {
  EXPECT_EXIT(
      {
        const ExitReporter words("kumo-worker a", "");
        EndWhenOutOfResources(words);
        AllowNoThread();
        const ThreadPool pool(1);
      },
      testing::ExitedWithCode(75),
      "kumo-worker a: cannot start a thread: Resource temporarily unavailable; this user's limit "
      ".ulimit -u. allows 0 processes and threads, .*; raise ");
}

TEST(OutOfThreadsDeathTest, WithoutAHandlerAPoolThrowsAndLeavesNoThread) {
  EXPECT_EXIT(
      {
        AllowNoThread();
        Status status;
        try {
          const ThreadPool pool(2);
        } catch (...) {
          status = CurrentException();
        }
        std::fputs(status.message().c_str(), stderr);
        _exit(status.code() == StatusCode::kResourceExhausted ? 0 : 1);
      },
      testing::ExitedWithCode(0), "cannot start a thread: Resource temporarily unavailable");
}

TEST(OutOfThreadsDeathTest, ATryThatIsRefusedIsAnError) {
  EXPECT_EXIT(
      {
        AllowNoThread();
        std::fputs(TryThreads(2).message().c_str(), stderr);
        _exit(TryThreads(2).code() == StatusCode::kResourceExhausted ? 0 : 1);
      },
      testing::ExitedWithCode(0), "cannot start a thread: Resource temporarily unavailable");
}

TEST(TryThreads, IsOkWhereThereAreThreads) { EXPECT_TRUE(TryThreads(3).ok()); }

TEST(TryAllocateAligned, IsNullWhereThereIsNoMore) {
  EXPECT_EQ(TryAllocateAligned(kVast), nullptr);
  EXPECT_EQ(TryAllocateAligned(SIZE_MAX), nullptr);
}

}  // namespace
}  // namespace kumo
