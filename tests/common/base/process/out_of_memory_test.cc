#include "common/base/process/exit_report.h"

#include <gtest/gtest.h>

#include <new>

#include "common/base/buffer.h"

namespace kumo {
namespace {

// More than any machine maps.
constexpr size_t kVast = size_t{1} << 62;

TEST(OutOfMemoryDeathTest, AnArrayThatCannotBeHadEndsTheProcessWithOneLine) {
  EXPECT_EXIT(
      {
        const ExitReporter words("kumo-worker a", "");
        EndWhenOutOfMemory(words);
        Buffer<float> buffer(kVast / sizeof(float));
      },
      testing::ExitedWithCode(75), "kumo-worker a: out of memory: ");
}

TEST(OutOfMemoryDeathTest, SoDoesNew) {
  EXPECT_EXIT(
      {
        const ExitReporter words("kumo-worker a", "");
        EndWhenOutOfMemory(words);
        ::operator delete(::operator new(kVast));
      },
      testing::ExitedWithCode(75), "kumo-worker a: out of memory: ");
}

TEST(TryAllocateAligned, IsNullWhereThereIsNoMore) {
  EXPECT_EQ(TryAllocateAligned(kVast), nullptr);
  EXPECT_EQ(TryAllocateAligned(SIZE_MAX), nullptr);
}

}  // namespace
}  // namespace kumo
