#include "common/base/buffer.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(Buffer, IsAlignedAndZeroAndItsOwnAtEverySize) {
  std::vector<Buffer<uint8_t>> buffers;
  for (const size_t size :
       {size_t{1}, size_t{63}, size_t{4096}, 2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 7 * kMiB + 5}) {
    for (int times = 0; times < 3; ++times) {
      Buffer<uint8_t> buffer(size);
      const size_t alignment = size < 2 * kMiB ? 64 : 2 * kMiB;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % alignment, 0u) << size;
      EXPECT_TRUE(std::ranges::all_of(buffer.span(), [](uint8_t byte) { return byte == 0; }));
      std::ranges::fill(buffer.span(), static_cast<uint8_t>(buffers.size() + 1));
      buffers.push_back(std::move(buffer));
    }
    buffers.erase(buffers.end() - 2);  // its memory may be had again, and is zero then
  }
  for (const Buffer<uint8_t>& buffer : buffers) {
    EXPECT_TRUE(
        std::ranges::all_of(buffer.span(), [&](uint8_t byte) { return byte == buffer[0]; }));
  }
}

TEST(Buffer, IsEmptyWithoutASizeAndAfterItWasMoved) {
  Buffer<float> none(0), some(3 * kMiB);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.data(), nullptr);
  Buffer<float> taken = std::move(some);
  EXPECT_EQ(taken.size(), 3 * kMiB);
  EXPECT_TRUE(some.empty());  // NOLINT(bugprone-use-after-move): it says so
  taken = Buffer<float>();
  EXPECT_TRUE(taken.empty());
}

// Bytes of memory that this process has addresses for.
size_t Addresses() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  statm >> pages;
  return pages * 4096;
}

// A contribution of 7 MB is made in each round, while others are still on their way, and small
// things are allocated in between: the heap grew by 64 MiB before it found the room of former ones.
TEST(Buffer, LongOnesThatComeAndGoTakeNoMoreThanThoseThatAreThere) {
  std::deque<Buffer<uint8_t>> sent;
  std::deque<std::vector<uint8_t>> small;
  size_t after_first = 0;
  for (int round = 0; round < 200; ++round) {
    sent.emplace_back(7 * kMiB);
    small.emplace_back(10'000 + round);
    if (sent.size() > 3) sent.pop_front();
    if (small.size() > 20) small.pop_front();
    if (round == 10) after_first = Addresses();
  }
  EXPECT_LT(Addresses(), after_first + 16 * kMiB);
}

}  // namespace
}  // namespace kumo
