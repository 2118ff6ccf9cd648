#include "common/base/human_readable.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(HumanReadableTest, BytesHaveBinaryUnitsAndThreeDigits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1024), "1.00 KiB");
  EXPECT_EQ(HumanBytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(HumanBytes(100 << 20), "100 MiB");
  EXPECT_EQ(HumanBytes(12'900'000'000), "12.0 GiB");
  EXPECT_EQ(HumanBytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(HumanReadableTest, CountsHaveDecimalPrefixes) {
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(0.25), "0.25");
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(999.6), "1.00 k");
  EXPECT_EQ(HumanCount(12345), "12.3 k");
  EXPECT_EQ(HumanCount(-2e6), "-2.00 M");
  EXPECT_EQ(HumanCount(std::nan("")), "-");
  EXPECT_EQ(HumanCount(HUGE_VAL), "-");
}

TEST(HumanReadableTest, DurationsNameTwoUnits) {
  EXPECT_EQ(HumanDuration(0), "0 ms");
  EXPECT_EQ(HumanDuration(0.85), "850 ms");
  EXPECT_EQ(HumanDuration(0.9999), "1.0 s");
  EXPECT_EQ(HumanDuration(59.96), "1 min 00 s");
  EXPECT_EQ(HumanDuration(200), "3 min 20 s");
  EXPECT_EQ(HumanDuration(3599.9), "1 h 00 min");
  EXPECT_EQ(HumanDuration(3720), "1 h 02 min");
  EXPECT_EQ(HumanDuration(76 * 3600), "3 d 04 h");
  EXPECT_EQ(HumanDuration(-1), "-");
  EXPECT_EQ(HumanDuration(std::nan("")), "-");
  EXPECT_EQ(HumanDuration(HUGE_VAL), "-");
}

}  // namespace
}  // namespace kumo
