#include "common/base/crc32c.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

std::vector<std::byte> RandomBytes(size_t n) {
  Rng rng(1, RngPurpose::kTest, n);
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.NextUint32());
  return bytes;
}

// The definition, bit by bit: the polynomial 0x1EDC6F41, reflected.
uint32_t SlowCrc32c(std::span<const std::byte> bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

TEST(Crc32cTest, StandardCheckValueComesOut) {
  const std::string_view digits = "123456789";
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(digits.data(), digits.size()))), 0xE3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
  // RFC 3720, B.4: 32 bytes of zeros.
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32)), 0x8A9136AAu);
}

TEST(Crc32cTest, EqualsTheDefinitionAtEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = RandomBytes(300);
  for (size_t begin = 0; begin < 17; ++begin) {
    for (size_t n = 0; begin + n <= bytes.size(); ++n) {
      const auto part = std::span(bytes).subspan(begin, n);
      ASSERT_EQ(Crc32c(part), SlowCrc32c(part)) << begin << " + " << n;
    }
  }
}

TEST(Crc32cTest, PiecesGiveTheChecksumOfTheWholeWhereverItIsCut) {
  const std::vector<std::byte> bytes = RandomBytes(5000);
  const uint32_t whole = Crc32c(bytes);
  for (size_t cut = 0; cut <= bytes.size(); cut += 7) {
    const uint32_t first = Crc32c(std::span(bytes).first(cut));
    ASSERT_EQ(ExtendCrc32c(first, std::span(bytes).subspan(cut)), whole) << cut;
  }
}

TEST(Crc32cTest, MaskIsTensorFlows) {
  // tensorflow/core/lib/hash/crc32c.h: rotate right by 15 bits and add a constant.
  EXPECT_EQ(MaskCrc32c(0), 0xA282EAD8u);
  EXPECT_EQ(MaskCrc32c(0x00008000u), 0xA282EAD9u);
  EXPECT_EQ(MaskCrc32c(0x00000001u), 0xA284EAD8u);
}

}  // namespace
}  // namespace kumo
