// Single codecs against their definitions: bytes written out by hand, and references in plain
// arithmetic.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
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

std::vector<float> Decoded(const Codec& codec, const std::vector<uint8_t>& bytes, size_t n) {
  std::vector<float> out(n);
  codec.Decode(std::as_bytes(std::span(bytes)), n, 0, out);
  return out;
}

TEST(Int4, WritesTheScaleThenTwoCodesAByte) {
  // Scale 2; 3 lies between codes 1 and 2, 5 between 2 and 3: both go to 2.
  const Codec& int4 = Named("int4");
  EXPECT_EQ(Bytes(int4, {14.0f, -14.0f, 3.0f, 5.0f, -3.0f}),
            (std::vector<uint8_t>{0, 0, 0, 0x40, 7, 9, 2, 2, 14}));
  std::vector<float> x(300);
  x[0] = 14.0f;
  x[1] = -4.0f;
  x[256] = -2.0f;
  x[257] = 6.0f;
  const std::vector<uint8_t> bytes = Bytes(int4, x);
  ASSERT_EQ(bytes.size(), 4u + 256u);
  EXPECT_EQ(bytes[4], 0xf7);
  EXPECT_EQ(bytes[5], 0x3e);
  EXPECT_EQ(Decoded(int4, bytes, 300), x);
}

TEST(E3m0, RoundsToTheNearestPowerOfTwo) {
  // Scale 1; 1.5 lies between 1 and 2, .5 between 0 and 1, 48 between 32 and 64.
  const std::vector<float> x = {64.0f, -64.0f, 48.0f, 47.9f, -1.5f, 1.4f, 0.5f, -0.49f, 0.0f};
  const std::vector<uint8_t> bytes = Bytes(Named("e3m0"), x);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0, 0, 0x80, 0x3f, 7, 15, 7, 6, 10, 1, 1, 8, 0}));
  EXPECT_EQ(Decoded(Named("e3m0"), bytes, x.size()),
            (std::vector<float>{64, -64, 64, 32, -2, 1, 1, 0, 0}));
}

TEST(TwoBit, SendsTheThresholdOnceNumbersReachIt) {
  const Codec& codec = CodecOf(CodecId::kTwoBit, {.threshold = 0.25f});
  std::vector<float> x(400);
  x[0] = 0.25f;
  x[1] = -7.0f;
  x[2] = 0.24f;
  x[128] = -0.25f;
  x[256] = 1.0f;
  x[384] = -1.0f;
  std::vector<float> residual(400, 0.0f);
  std::vector<uint8_t> bytes(codec.EncodedBytes(400));
  ASSERT_EQ(bytes.size(), 4u + 128u);
  ASSERT_EQ(codec.Encode(x, residual, std::as_writable_bytes(std::span(bytes))), -1);
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.begin() + 7),
            (std::vector<uint8_t>{0, 0, 0x80, 0x3e, 0xdd, 3, 0}));
  EXPECT_EQ(residual[0], 0.0f);
  EXPECT_EQ(residual[1], -6.75f);
  EXPECT_EQ(residual[2], 0.24f);
  EXPECT_EQ(residual[384], -0.75f);
  // The receiver knows no setting.
  EXPECT_EQ(Decoded(Named("2bit"), bytes, 400)[256], 0.25f);
}

TEST(TwoBit, ACodecOfSettingsIsMadeOnce) {
  const Codec& codec = CodecOf(CodecId::kTwoBit, {.threshold = 0.125f});
  EXPECT_EQ(&CodecOf(CodecId::kTwoBit, {.threshold = 0.125f}), &codec);
  EXPECT_EQ(codec.settings().threshold, 0.125f);
  EXPECT_EQ(CodecOf(CodecId::kTwoBit).settings().threshold, 0.5f);
  EXPECT_EQ(&CodecOf(CodecId::kInt8, {.threshold = 0.125f}), &Named("int8"));
}

// The mean over many keys is the number itself, and each number lies beside it.
TEST(Stochastic, RoundsWithoutBias) {
  for (const auto& [name, steps] : {std::pair("int8_stochastic", 127), {"int4_stochastic", 7}}) {
    const Codec& codec = Named(name);
    std::vector<float> x = {1.0f, -1.0f, 0.0f};
    for (int i = 0; i < 97; ++i) x.push_back(static_cast<float>(i) / 50.0f - 0.97f);
    std::vector<double> sums(x.size());
    constexpr int kKeys = 4000;
    std::vector<uint8_t> bytes(codec.EncodedBytes(x.size()));
    for (uint64_t key = 0; key < kKeys; ++key) {
      ASSERT_EQ(codec.EncodeIn({.key = key}, x, {}, std::as_writable_bytes(std::span(bytes))), -1);
      const std::vector<float> decoded = Decoded(codec, bytes, x.size());
      for (size_t i = 0; i < x.size(); ++i) sums[i] += static_cast<double>(decoded[i]);
    }
    // The deviation of one rounding is at most half a step.
    const double bound = 5 * 0.5 / steps / std::sqrt(static_cast<double>(kKeys));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(sums[i] / kKeys, static_cast<double>(x[i]), bound) << name << " " << i;
    }
    EXPECT_NEAR(sums[0] / kKeys, 1.0, 1e-6);
    EXPECT_EQ(sums[2], 0.0);
  }
}

TEST(Stochastic, OtherKeysAndPositionsRoundOtherwise) {
  const Codec& codec = Named("int4_stochastic");
  std::vector<float> x(512, 0.5f);
  x[0] = 1.0f;
  const auto coded = [&](const EncodeContext& context) {
    std::vector<std::byte> bytes(codec.EncodedBytes(x.size()));
    EXPECT_EQ(codec.EncodeIn(context, x, {}, bytes), -1);
    return bytes;
  };
  EXPECT_EQ(coded({.key = 1, .first = 512}), coded({.key = 1, .first = 512}));
  EXPECT_NE(coded({.key = 1, .first = 512}), coded({.key = 2, .first = 512}));
  EXPECT_NE(coded({.key = 1, .first = 512}), coded({.key = 1, .first = 1024}));
  EXPECT_NE(coded({.key = 1, .first = 512}), coded({.key = 1, .first = (uint64_t{1} << 32) + 512}));
}

// Against the convention's own formula, in double.
TEST(Cntk, KeepsFourSigmaOnBothSides) {
  for (const auto& [name, bits] :
       {std::pair("int8_cntk", 8), std::pair("int4_cntk", 4), std::pair("2bit_cntk", 2)}) {
    Rng rng(3, RngPurpose::kTest);
    std::vector<float> x(512);
    double squares = 0;
    for (float& v : x) {
      v = 0.01f * rng.NextNormal();
      if (rng.NextBelow(100) == 0) v *= 10;  // beyond 4 sigma
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
    const double sigma = std::sqrt(squares / 512);
    const double low = -4 * sigma;
    const double steps = std::pow(2.0, bits) - 1;
    const double step = 8 * sigma / steps;
    const std::vector<float> decoded = Decoded(Named(name), Bytes(Named(name), x), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double place = (static_cast<double>(x[i]) - low) / step;
      if (std::fabs(place - std::round(place)) < 1e-4) continue;  // float32 decides
      const double code = std::clamp(std::floor(place), 0.0, steps);
      EXPECT_NEAR(static_cast<double>(decoded[i]), low + (code + 0.5) * step, 1e-5 * sigma)
          << name << " " << i;
    }
  }
}

TEST(Cntk, NumbersOfAnySizeHaveAFiniteRange) {
  for (const char* name : {"int8_cntk", "int4_cntk", "2bit_cntk"}) {
    for (const float size : {std::numeric_limits<float>::max(), 1e30f, 0x1p-99f}) {
      std::vector<float> x(512, size / 16);
      for (size_t i = 0; i < 512; i += 2) x[i] = -size / 16;
      x[1] = size;
      const std::vector<uint8_t> bytes = Bytes(Named(name), x);
      EXPECT_TRUE(Named(name).Check(std::as_bytes(std::span(bytes)), 512).ok()) << name << size;
      EXPECT_GT(Decoded(Named(name), bytes, 512)[1], 0.0f) << name << " " << size;
    }
  }
}

TEST(Topk, WritesPositionsThenValues) {
  // 2 of 500: ceil(500 * 16 / 4096).
  const Codec& codec = CodecOf(CodecId::kTopk, {.kept = 16, .values = CodecId::kFp16});
  std::vector<float> x(500, 0.5f);
  x[0x123] = -2.0f;
  x[7] = 1.0f;
  const std::vector<uint8_t> bytes = Bytes(codec, x);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{7, 0x30, 0x12, 0, 0, 0x3c, 0, 0xc0}));
  std::vector<float> expected(500, 0.0f);
  expected[7] = 1.0f;
  expected[0x123] = -2.0f;
  EXPECT_EQ(Decoded(codec, bytes, 500), expected);
}

TEST(Topk, LengthIsAFunctionOfTheCount) {
  const Codec& codec = CodecOf(CodecId::kTopk, {.kept = 41, .values = CodecId::kInt4});
  // 41 positions in 62 bytes, 64 with the padding; a scale and 41 bytes, 48 with the padding.
  EXPECT_EQ(codec.EncodedBytes(4096), 64u + 48u);
  EXPECT_EQ(codec.EncodedBytes(4097), 64u + 48u + 4u + 8u);
  EXPECT_EQ(codec.group(), 4096u);
}

// Whatever the codec's number.
TEST(Topk, SendsItsValuesInAnyCodecOfBuckets) {
  for (const Codec* values : AllCodecs()) {
    if (values->group() != Codec::kBucket) continue;
    const Codec& codec = CodecOf(CodecId::kTopk, {.kept = 41, .values = values->id()});
    const size_t bytes = values->EncodedBytes(41);
    EXPECT_EQ(codec.EncodedBytes(4096), 64u + (bytes + 3) / 4 * 4) << values->name();
  }
}

// Against sorting, also where many are equal, at shares from one number to half of them.
TEST(Topk, SendsTheLargestAndOfEqualOnesTheFirst) {
  Rng rng(9, RngPurpose::kTest);
  for (int seed = 0; seed < 60; ++seed) {
    const int kept = std::vector{1, 5, 41, 410, 2048}[seed % 5];
    const Codec& codec = CodecOf(CodecId::kTopk, {.kept = kept, .values = CodecId::kFp32});
    const size_t n = std::vector<size_t>{9000, 4096, 4095, 600, 1}[rng.NextBelow(5)];
    std::vector<float> x(n);
    for (float& v : x) {
      v = rng.NextNormal() * std::exp2(static_cast<float>(seed % 7) * 20.0f - 60.0f);
      if (seed % 3 == 0) v = static_cast<float>(rng.NextBelow(4)) - 1.0f;
      if (seed % 3 == 1 && rng.NextBelow(2) == 0) v = 0.0f;
      if (seed == 59) v = 0.0f;
    }
    std::vector<float> residual(n, -0.0f);
    std::vector<std::byte> bytes(codec.EncodedBytes(n));
    ASSERT_EQ(codec.Encode(x, residual, bytes), -1);
    ASSERT_TRUE(codec.Check(bytes, n).ok());
    std::vector<float> expected(n, 0.0f);
    for (size_t begin = 0; begin < n; begin += 4096) {
      const size_t count = std::min<size_t>(4096, n - begin);
      std::vector<size_t> order(count);
      for (size_t i = 0; i < count; ++i) order[i] = begin + i;
      std::ranges::stable_sort(
          order, [&x](size_t a, size_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
      const size_t sent = (count * static_cast<size_t>(kept) + 4095) / 4096;
      for (size_t j = 0; j < sent; ++j) expected[order[j]] = x[order[j]];
    }
    std::vector<float> decoded(n);
    codec.Decode(bytes, n, 0, decoded);
    ASSERT_EQ(decoded, expected) << "seed " << seed;
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(residual[i], x[i] - expected[i]) << i;
  }
}

TEST(Topk, RefusesPositionsThatDoNotAscendOrLieBehindTheEnd) {
  const Codec& codec = CodecOf(CodecId::kTopk, {.kept = 16, .values = CodecId::kFp16});
  std::vector<float> x(500, 0.5f);
  x[100] = x[200] = 1.0f;
  const std::vector<uint8_t> good = Bytes(codec, x);
  const auto check = [&codec](const std::vector<uint8_t>& bytes) {
    return codec.Check(std::as_bytes(std::span(bytes)), 500);
  };
  ASSERT_TRUE(check(good).ok());
  std::vector<uint8_t> same = good;
  same[0] = 200;  // both are 200
  EXPECT_NE(check(same).message().find("position 200 after 200"), std::string::npos);
  std::vector<uint8_t> behind = good;
  behind[2] = 0x1f;  // 504
  EXPECT_NE(check(behind).message().find("among numbers 0 to 499"), std::string::npos);
  // Numbers that a bad position would give are left out.
  EXPECT_EQ(Decoded(codec, same, 500)[200], 1.0f);
  EXPECT_EQ(Decoded(codec, behind, 500)[100], 1.0f);
}

TEST(Topk, WhatIsNotSentChangesNoSum) {
  const Codec& codec = CodecOf(CodecId::kTopk, {.kept = 16, .values = CodecId::kFp32});
  std::vector<float> x(500, 0.5f);
  const std::vector<uint8_t> bytes = Bytes(codec, x);
  std::vector<float> sum(500, -0.0f);
  codec.DecodeAdd(std::as_bytes(std::span(bytes)), 500, 0, 2.0f, sum);
  EXPECT_EQ(sum[0], 1.0f);
  EXPECT_TRUE(std::signbit(sum[2]));
  EXPECT_TRUE(std::signbit(Decoded(codec, bytes, 500)[2]));
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
