// Single codecs against their definitions: bytes written out by hand, and references in plain
// arithmetic.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/codec/codec.h"

namespace kumo {
namespace {

const Codec& Named(std::string_view name) { return CodecOf(FindChoice<CodecId>(name).value()); }

std::vector<uint8_t> Bytes(const Codec& codec, const std::vector<float>& x) {
  std::vector<uint8_t> bytes(codec.EncodedBytes(x.size()));
  EXPECT_EQ(codec.Encode(x, {}, std::as_writable_bytes(std::span(bytes))), -1);
  return bytes;
}

uint16_t HalfOf(const Codec& codec, float x) {
  const std::vector<uint8_t> bytes = Bytes(codec, {x});
  return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

float FromHalf(const Codec& codec, uint16_t half) {
  const uint8_t bytes[2] = {static_cast<uint8_t>(half), static_cast<uint8_t>(half >> 8)};
  float out = 0.0f;
  codec.Decode(std::as_bytes(std::span(bytes)), 1, 0, std::span(&out, 1));
  return out;
}

// The value of IEEE 754 binary16 bits, from the definition.
double ValueOfBinary16(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return (half & 0x8000) != 0 ? -value : value;
}

TEST(Fp16, DecodesEveryPatternToItsValueAndBack) {
  const Codec& fp16 = Named("fp16");
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double expected = ValueOfBinary16(half);
    const float value = FromHalf(fp16, half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    if (std::isinf(expected)) continue;
    ASSERT_EQ(HalfOf(fp16, value), half) << bits;
  }
}

// Between two neighbours every number goes to the nearer one, the middle to the even one.
template <typename ValueOf>
void ExpectNearestEven(const Codec& codec, uint16_t largest, ValueOf value_of) {
  for (uint32_t bits = 0; bits < largest; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const auto middle = static_cast<float>((value_of(low) + value_of(high)) / 2);
    const uint16_t even = (low & 1) == 0 ? low : high;
    ASSERT_EQ(HalfOf(codec, middle), even) << bits;
    ASSERT_EQ(HalfOf(codec, std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(HalfOf(codec, std::nextafter(middle, INFINITY)), high) << bits;
    ASSERT_EQ(HalfOf(codec, -middle), even | 0x8000) << bits;
  }
}

TEST(Fp16, RoundsToNearestEven) { ExpectNearestEven(Named("fp16"), 0x7bff, ValueOfBinary16); }

TEST(Bf16, RoundsToNearestEven) {
  ExpectNearestEven(Named("bf16"), 0x7f7f, [](uint16_t half) {
    return static_cast<double>(std::bit_cast<float>(uint32_t{half} << 16));
  });
}

TEST(Fp16, SaturatesInsteadOfOverflowing) {
  const Codec& fp16 = Named("fp16");
  for (const float x : {65504.0f, 65519.9f, 65520.0f, 1e6f, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(HalfOf(fp16, x), 0x7bff) << x;
    EXPECT_EQ(HalfOf(fp16, -x), 0xfbff) << x;
  }
}

TEST(Bf16, SaturatesInsteadOfOverflowing) {
  EXPECT_EQ(HalfOf(Named("bf16"), std::numeric_limits<float>::max()), 0x7f7f);
  EXPECT_EQ(HalfOf(Named("bf16"), -std::numeric_limits<float>::max()), 0xff7f);
}

// Whole vectors take another path than single numbers.
TEST(Fp16, AnArrayHasTheBitsOfItsSingleNumbersAtEveryLevel) {
  std::vector<uint16_t> halves;
  std::vector<float> edges;  // each value, the middle to the next one, and its neighbours
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    halves.push_back(static_cast<uint16_t>(bits));
    if ((bits & 0x7fff) > 0x7bff) continue;
    const double value = ValueOfBinary16(halves.back());
    // Beyond the largest value the spacing stays the same.
    const double next = (bits & 0x7fff) == 0x7bff ? std::copysign(65536.0, value)
                                                  : ValueOfBinary16(halves.back() + 1);
    const auto middle = static_cast<float>((value + next) / 2);
    edges.insert(edges.end(), {static_cast<float>(value), middle, std::nextafter(middle, 0.0f),
                               std::nextafter(middle, 2 * middle)});
  }
  edges.insert(edges.end(), {1e6f, -1e30f, 1e-40f, -1e-45f});
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    const Codec& fp16 = *AllCodecs(isa)[static_cast<size_t>(CodecId::kFp16) - 1];
    std::vector<float> values(halves.size());
    fp16.Decode(std::as_bytes(std::span(halves)), halves.size(), 0, values);
    for (size_t i = 0; i < halves.size(); ++i) {
      const double expected = ValueOfBinary16(halves[i]);
      ASSERT_TRUE(static_cast<double>(values[i]) == expected ||
                  (std::isnan(values[i]) && std::isnan(expected)))
          << i;
    }
    std::vector<uint16_t> codes(edges.size());
    std::vector<float> residual(edges.size(), -0.0f);  // x + -0 is x, also for x = -0
    ASSERT_EQ(fp16.Encode(edges, residual, std::as_writable_bytes(std::span(codes))), -1);
    for (size_t i = 0; i < edges.size(); ++i) {
      const uint16_t half = HalfOf(fp16, edges[i]);
      ASSERT_EQ(codes[i], half) << edges[i];
      ASSERT_EQ(residual[i], edges[i] - FromHalf(fp16, half)) << edges[i];
    }
  }
}

TEST(Fp32, WritesLittleEndianNumbers) {
  EXPECT_EQ(Bytes(Named("fp32"), {1.0f, -2.5f}),
            (std::vector<uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0}));
}

TEST(Int8, WritesTheScaleThenTheCodes) {
  // Scale 2; 3 lies between codes 1 and 2, 5 between 2 and 3: both go to 2.
  EXPECT_EQ(Bytes(Named("int8"), {254.0f, -254.0f, 3.0f, 5.0f, -3.0f, 0.0f}),
            (std::vector<uint8_t>{0, 0, 0, 0x40, 127, 0x81, 2, 2, 0xfe, 0}));
}

TEST(Int8, HasOneScalePerBucket) {
  std::vector<float> x(513, 0.5f);
  x[512] = 1270.0f;
  const std::vector<uint8_t> bytes = Bytes(Named("int8"), x);
  ASSERT_EQ(bytes.size(), 516u + 5u);
  float scale;
  std::memcpy(&scale, bytes.data() + 516, 4);
  EXPECT_EQ(scale, 10.0f);
  EXPECT_EQ(bytes[520], 127);
  EXPECT_EQ(bytes[515], 127);
}

TEST(Int8, LeavesABucketOfTinyNumbersToTheResidual) {
  const std::vector<float> x = {0x1p-101f, -0x1p-120f, 0.0f};
  std::vector<float> residual(3, 0.0f);
  std::vector<std::byte> bytes(Named("int8").EncodedBytes(3));
  ASSERT_EQ(Named("int8").Encode(x, residual, bytes), -1);
  EXPECT_EQ(bytes, std::vector<std::byte>(bytes.size(), std::byte{0}));
  EXPECT_EQ(residual, x);
}

TEST(OneBit, WritesTwoMeansAndTheBitsByLane) {
  // Numbers 0 .. 15 are bit 0 of words 0 .. 15, number 16 is bit 1 of word 0.
  std::vector<float> x(17, -1.0f);
  x[1] = 3.0f;
  x[16] = 5.0f;
  x[2] = -0.0f;  // counts as >= 0
  const std::vector<uint8_t> bytes = Bytes(Named("1bit"), x);
  ASSERT_EQ(bytes.size(), 72u);
  float low, high;
  std::memcpy(&low, bytes.data(), 4);
  std::memcpy(&high, bytes.data() + 4, 4);
  EXPECT_EQ(low, -1.0f);
  EXPECT_EQ(high, 8.0f / 3.0f);
  std::vector<uint8_t> words(64, 0);
  words[0] = 2;
  words[4] = 1;
  words[8] = 1;
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin() + 8, bytes.end()), words);
}

TEST(OneBit, AnEmptySideHasLevelZero) {
  const std::vector<uint8_t> bytes = Bytes(Named("1bit"), {2.0f, 4.0f});
  float levels[2];
  std::memcpy(levels, bytes.data(), 8);
  EXPECT_EQ(levels[0], 0.0f);
  EXPECT_EQ(levels[1], 3.0f);
}

TEST(OneBit, LevelsAreTheMeansOfEachSide) {
  Rng rng(7, RngPurpose::kTest);
  for (const size_t n : {size_t{512}, size_t{300}, size_t{33}}) {
    std::vector<float> x(n);
    double sums[2] = {0, 0};
    int counts[2] = {0, 0};
    for (float& v : x) {
      v = rng.NextNormal() + 0.3f;
      sums[v >= 0.0f] += static_cast<double>(v);
      ++counts[v >= 0.0f];
    }
    const std::vector<uint8_t> bytes = Bytes(Named("1bit"), x);
    float levels[2];
    std::memcpy(levels, bytes.data(), 8);
    for (int side = 0; side < 2; ++side) {
      EXPECT_NEAR(static_cast<double>(levels[side]), sums[side] / counts[side], 1e-6);
    }
  }
}

TEST(OneBit, IgnoresBitsBeyondTheChunksEnd) {
  const Codec& codec = Named("1bit");
  const size_t n = 20;
  std::vector<std::byte> bytes(72, std::byte{0});
  std::vector<float> zeros(n);
  codec.Decode(bytes, n, 0, zeros);
  for (size_t i = n; i < Codec::kBucket; ++i) {
    bytes[8 + 4 * (i % 16) + i / 16 / 8] |= std::byte{static_cast<uint8_t>(1 << (i / 16 % 8))};
  }
  std::vector<float> out(n);
  codec.Decode(bytes, n, 0, out);
  EXPECT_EQ(out, zeros);
}

}  // namespace
}  // namespace kumo
