// TensorBoard's event files, read by the format's definition.
#pragma once

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/base/file.h"
#include "proto/tensorboard.pb.h"

namespace kumo::test {

// Fails the test on any damage. may_be_torn: a last record that is cut short is left out instead.
inline std::vector<tensorboard::Event> ReadEvents(std::string_view file, bool may_be_torn = false) {
  const auto word = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= uint64_t{static_cast<unsigned char>(file[at + i])} << (8 * i);
    }
    return value;
  };
  const auto masked_crc = [&](size_t at, size_t bytes) {
    const uint32_t crc = Crc32c(AsBytes(file.substr(at, bytes)));
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  std::vector<tensorboard::Event> events;
  size_t at = 0;
  while (at < file.size()) {
    if (file.size() - at < 12) {
      EXPECT_TRUE(may_be_torn) << "half a record at " << at;
      break;
    }
    const uint64_t length = word(at, 8);
    EXPECT_EQ(word(at + 8, 4), masked_crc(at, 8));
    if (file.size() - at - 12 < length + 4) {
      EXPECT_TRUE(may_be_torn) << "half a record at " << at;
      break;
    }
    EXPECT_EQ(word(at + 12 + length, 4), masked_crc(at + 12, length));
    EXPECT_TRUE(
        events.emplace_back().ParseFromArray(file.data() + at + 12, static_cast<int>(length)));
    at += 16 + length;
  }
  return events;
}

}  // namespace kumo::test
