#include "common/transport/message.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(ChunkWindow, HoldsSoManyBytesOrAFewChunks) {
  EXPECT_EQ(ChunkWindow(int64_t{1} << 20), 256);
  EXPECT_EQ(ChunkWindow(int64_t{64} << 20), 4);
  EXPECT_EQ(ChunkWindow(int64_t{512} << 20), 4);
  EXPECT_EQ(ChunkWindow(2048), 2048);
  EXPECT_EQ(ChunkWindow(0), 2048);
}

}  // namespace
}  // namespace kumo
