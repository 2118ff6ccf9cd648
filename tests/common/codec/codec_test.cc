// What every codec of the list must do, on every instruction-set level of this machine.
#include "common/codec/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

constexpr size_t kBucket = Codec::kBucket;

// Numbers of very different sizes in one array: what gradients look like, with exact zeros of both
// signs and a few subnormal ones.
std::vector<float> SomeNumbers(size_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> numbers(n);
  for (float& x : numbers) {
    x = rng.NextNormal() * std::ldexp(1.0f, static_cast<int>(rng.NextBelow(12)) - 8);
    const uint64_t special = rng.NextBelow(64);
    if (special == 0) x = 0.0f;
    if (special == 1) x = -0.0f;
    if (special == 2) x = std::numeric_limits<float>::denorm_min() * 3;
  }
  return numbers;
}

std::vector<std::byte> RandomBytes(size_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest, 1);
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.NextUint32());
  return bytes;
}

// The numbers lie around 2^32, where the halves of a position change.
EncodeContext Context(size_t first = 0) {
  return {.key = 7, .first = (uint64_t{1} << 32) - 1000 + first};
}

// first: of the numbers, among those of the test.
std::vector<std::byte> Encoded(const Codec& codec, std::span<const float> x,
                               std::span<float> residual = {}, size_t first = 0) {
  std::vector<std::byte> bytes(codec.EncodedBytes(x.size()));
  EXPECT_EQ(codec.EncodeIn(Context(first), x, residual, bytes), -1);
  return bytes;
}

std::vector<float> Decoded(const Codec& codec, std::span<const std::byte> bytes, size_t n) {
  std::vector<float> out(n);
  codec.Decode(bytes, n, 0, out);
  return out;
}

bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
// Which of several NaNs an addition gives is not fixed.
bool SameBitsOrBothNan(float a, float b) {
  return SameBits(a, b) || (std::isnan(a) && std::isnan(b));
}
bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!SameBitsOrBothNan(a[i], b[i])) return false;
  }
  return true;
}

float AbsMax(std::span<const float> x) {
  float top = 0.0f;
  for (float v : x) top = std::max(top, std::fabs(v));
  return top;
}

float FactorOf(const Codec& codec) {
  return codec.traits().decays_residual ? codec.settings().residual_factor : 1.0f;
}

// How far a decoded number may be from u, for a bucket whose largest |u| is absmax.
float ErrorBound(const Codec& codec, float u, float absmax) {
  switch (codec.id()) {
    case CodecId::kFp32:
      return 0.0f;
    case CodecId::kFp16:  // half a unit of the last of 11 bits, or of the smallest subnormal
      return std::max(std::fabs(u) * 0x1p-11f, 0x1p-25f);
    case CodecId::kBf16:
      return std::max(std::fabs(u) * 0x1p-8f, std::numeric_limits<float>::denorm_min() * 0x8000);
    case CodecId::kInt8:
      return std::max(absmax / 127.0f * 0.5001f, 0x1p-100f);
    case CodecId::kOneBit:  // both numbers lie on one side of zero
      return absmax;
    case CodecId::kInt4:
      return std::max(absmax / 7.0f * 0.5001f, 0x1p-100f);
    case CodecId::kE3m0:  // half of the distance of two powers of two, or of 0 and the smallest
      return std::max({std::fabs(u) * 0.3334f, absmax * 0x1.001p-7f, 0x1p-100f});
    case CodecId::kTwoBit:
      return std::max(std::fabs(u), codec.settings().threshold);
    case CodecId::kInt8Stochastic:
      return std::max(absmax / 127.0f * 1.0001f, 0x1p-100f);
    case CodecId::kInt4Stochastic:
      return std::max(absmax / 7.0f * 1.0001f, 0x1p-100f);
    case CodecId::kInt8Cntk:  // beyond 4 sigma numbers are cut off
    case CodecId::kInt4Cntk:
      return absmax;
    case CodecId::kTwoBitCntk:  // a step is up to 8/3 sigma
      return std::max(2.0f * absmax, 0x1p-100f);
    case CodecId::kTopk:  // what is not sent
      return std::max(std::fabs(u), absmax / 127.0f * 0.5001f);
    case CodecId::kTopk2bit:
      return 2.0f * absmax;
  }
  ADD_FAILURE() << "a codec of the list has no error bound here: " << codec.name();
  return 0.0f;
}

const std::vector<size_t> kLengths = {0,   1,   2,   15,   16,   17,   31,   255,
                                      511, 512, 513, 1000, 1024, 1025, 4096, 5003};

struct CodecCase {
  Isa isa;
  const Codec* codec;
};

std::vector<CodecCase> AllCases() {
  std::vector<CodecCase> cases;
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    for (const Codec* codec : AllCodecs(isa)) cases.push_back({isa, codec});
  }
  return cases;
}

class EveryCodec : public testing::TestWithParam<CodecCase> {
 protected:
  const Codec& codec() const { return *GetParam().codec; }
};

TEST_P(EveryCodec, DecodesWithinItsErrorBound) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = SomeNumbers(n, n);
    const std::vector<float> decoded = Decoded(codec(), Encoded(codec(), x), n);
    for (size_t i = 0; i < n; ++i) {
      const size_t group = i / codec().group() * codec().group();
      const float absmax =
          AbsMax(std::span(x).subspan(group, std::min(codec().group(), n - group)));
      ASSERT_LE(std::fabs(decoded[i] - x[i]), ErrorBound(codec(), x[i], absmax))
          << "number " << i << " of " << n;
    }
  }
}

TEST_P(EveryCodec, LosslessMeansTheSameBits) {
  const std::vector<float> x = SomeNumbers(1500, 3);
  const bool same = SameBits(Decoded(codec(), Encoded(codec(), x), x.size()), x);
  EXPECT_EQ(same, codec().lossless());
}

TEST_P(EveryCodec, KeepsWhatItDoesNotSendInTheResidual) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = SomeNumbers(n, n + 1);
    const std::vector<float> before = SomeNumbers(n, n + 2);
    std::vector<float> residual = before;
    const std::vector<float> decoded = Decoded(codec(), Encoded(codec(), x, residual), n);
    for (size_t i = 0; i < n; ++i) {
      const volatile float kept = FactorOf(codec()) * before[i];
      const float u = x[i] + kept;
      ASSERT_TRUE(SameBits(residual[i], u - decoded[i])) << "number " << i << " of " << n;
    }
  }
}

TEST_P(EveryCodec, FeedbackDeliversEverythingInTheLongRun) {
  CodecSettings settings = codec().settings();
  settings.residual_factor = 1.0f;
  const Codec& keeps_all =
      codec().traits().decays_residual ? CodecOf(codec().id(), settings) : codec();
  const size_t n = 700;
  const std::vector<float> x = SomeNumbers(n, 5);
  std::vector<float> residual(n, 0.0f);
  std::vector<double> delivered(n, 0.0);
  const int rounds = 200;
  for (int r = 0; r < rounds; ++r) {
    const std::vector<float> decoded = Decoded(keeps_all, Encoded(keeps_all, x, residual), n);
    for (size_t i = 0; i < n; ++i) delivered[i] += static_cast<double>(decoded[i]);
  }
  for (size_t i = 0; i < n; ++i) {
    const double missing = rounds * static_cast<double>(x[i]) - delivered[i];
    const double rounding = 1e-4 * rounds * static_cast<double>(AbsMax(x));
    ASSERT_NEAR(missing, static_cast<double>(residual[i]), rounding) << "number " << i;
  }
}

TEST_P(EveryCodec, WithoutResidualSendsTheSameBytesAsWithAResidualOfZeros) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = SomeNumbers(n, n + 4);
    std::vector<float> zeros(n, -0.0f);  // x + -0 is x, also for x = -0
    EXPECT_EQ(Encoded(codec(), x), Encoded(codec(), x, zeros)) << n;
  }
}

TEST_P(EveryCodec, AChunkCutAtABucketHasTheBytesOfItsParts) {
  const size_t group = codec().group();
  const size_t n = 5 * group + 77;
  const std::vector<float> x = SomeNumbers(n, 9);
  std::vector<float> residual = SomeNumbers(n, 10);
  std::vector<float> residual_of_parts = residual;
  const std::vector<std::byte> whole = Encoded(codec(), x, residual);
  for (size_t cut = 0; cut < n; cut += group) {
    std::vector<float> parts_residual = residual_of_parts;
    auto bytes = Encoded(codec(), std::span(x).first(cut), std::span(parts_residual).first(cut));
    const auto rest =
        Encoded(codec(), std::span(x).subspan(cut), std::span(parts_residual).subspan(cut), cut);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    EXPECT_EQ(bytes, whole) << "cut at " << cut;
    EXPECT_TRUE(SameBits(parts_residual, residual));
  }
}

TEST_P(EveryCodec, AnyRangeFromAGranuleOnDecodesAsInTheWhole) {
  const size_t n = codec().group() + 6 * kBucket + 301;
  const std::vector<std::byte> bytes = Encoded(codec(), SomeNumbers(n, 11));
  const std::vector<float> whole = Decoded(codec(), bytes, n);
  for (size_t first = 0; first < n; first += codec().granule()) {
    for (const size_t count :
         {size_t{0}, size_t{1}, size_t{100}, kBucket, kBucket + 3, n - first}) {
      if (first + count > n) continue;
      std::vector<float> part(count);
      codec().Decode(bytes, n, first, part);
      EXPECT_TRUE(SameBits(part, {whole.begin() + first, whole.begin() + first + count}));
    }
  }
}

TEST_P(EveryCodec, DecodeAddAddsTheScaledDecodedNumbers) {
  for (const size_t n : kLengths) {
    const std::vector<std::byte> bytes = Encoded(codec(), SomeNumbers(n, n + 20));
    const std::vector<float> decoded = Decoded(codec(), bytes, n);
    std::vector<float> sum = SomeNumbers(n, n + 21);
    std::vector<float> expected = sum;
    const volatile float scale = 37.0f;
    for (size_t i = 0; i < n; ++i) {
      const volatile float product = scale * decoded[i];
      expected[i] += product;
    }
    codec().DecodeAdd(bytes, n, 0, scale, sum);
    EXPECT_TRUE(SameBits(sum, expected)) << n;
  }
}

TEST_P(EveryCodec, WorksAtAnyAlignmentAndWritesNothingOutside) {
  const size_t n = kBucket + 100;
  const std::vector<float> x = SomeNumbers(n, 30);
  const std::vector<std::byte> bytes = Encoded(codec(), x);
  for (size_t shift = 1; shift < 9; ++shift) {
    std::vector<std::byte> room(bytes.size() + 32, std::byte{0xa5});
    std::vector<float> floats(n + shift);
    std::memcpy(floats.data() + shift, x.data(), n * sizeof(float));
    const std::span<std::byte> out(room.data() + shift, bytes.size());
    ASSERT_EQ(codec().EncodeIn(Context(), std::span(floats).subspan(shift), {}, out), -1);
    EXPECT_EQ(std::vector<std::byte>(out.begin(), out.end()), bytes);
    for (size_t i = 0; i < room.size(); ++i) {
      const bool inside = i >= shift && i < shift + bytes.size();
      ASSERT_TRUE(inside || room[i] == std::byte{0xa5}) << i;
    }
    std::vector<float> decoded(n + 2 * shift, 7.0f);
    codec().Decode(out, n, 0, std::span(decoded).subspan(shift, n));
    EXPECT_TRUE(SameBits({decoded.begin() + shift, decoded.begin() + shift + n},
                         Decoded(codec(), bytes, n)));
    for (size_t i = 0; i < shift; ++i) {
      ASSERT_EQ(decoded[i], 7.0f);
      ASSERT_EQ(decoded[shift + n + i], 7.0f);
    }
  }
}

TEST_P(EveryCodec, ReportsTheFirstNumberThatIsNotFinite) {
  for (const size_t n : {size_t{1}, size_t{40}, kBucket, 3 * kBucket + 13}) {
    for (const size_t at : {size_t{0}, n / 2, n - 1}) {
      for (const float bad :
           {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> x = SomeNumbers(n, 40);
        x[at] = bad;
        x[n - 1] = bad;
        std::vector<std::byte> out(codec().EncodedBytes(n));
        EXPECT_EQ(codec().Encode(x, {}, out), static_cast<int64_t>(at));
        std::vector<float> residual(n, 0.0f);
        EXPECT_EQ(codec().Encode(x, residual, out), static_cast<int64_t>(at));
        // It may as well come out of the addition.
        x = SomeNumbers(n, 41);
        residual.assign(n, 0.0f);
        residual[at] = bad;
        EXPECT_EQ(codec().Encode(x, residual, out), static_cast<int64_t>(at));
      }
    }
  }
}

TEST_P(EveryCodec, ReportsTheFirstNumberAboveALimit) {
  for (const float most : {0.5f, 65504.0f, 131008.0f, 1e30f}) {
    for (const size_t at : {size_t{0}, size_t{700}, size_t{1100}}) {
      const size_t n = 2 * kBucket + 100;
      std::vector<float> x(n, most / 2);
      x[5] = -most;
      std::vector<std::byte> out(codec().EncodedBytes(n));
      std::vector<float> residual(n, 0.0f);
      EXPECT_EQ(codec().EncodeIn({.most = most}, x, {}, out), -1);
      EXPECT_EQ(codec().EncodeIn({.most = most}, x, residual, out), -1);
      x[at] = x[n - 1] = at % 2 == 0 ? std::nextafter(most, INFINITY) : -2 * most;
      residual.assign(n, 0.0f);
      EXPECT_EQ(codec().EncodeIn({.most = most}, x, {}, out), static_cast<int64_t>(at));
      EXPECT_EQ(codec().EncodeIn({.most = most}, x, residual, out), static_cast<int64_t>(at));
    }
  }
}

// What is cut off is lost only where there is nothing to keep it, or too much of it.
TEST_P(EveryCodec, SaturationTakesNothingForGoodUpToItsLimit) {
  const bool narrow = codec().largest() < std::numeric_limits<float>::max() / 2;
  if (!narrow) {
    EXPECT_EQ(codec().MostWithoutLoss(true), codec().largest());
    EXPECT_EQ(codec().MostWithoutLoss(false), codec().largest());
    return;
  }
  const float alone = codec().MostWithoutLoss(false);
  const float kept = codec().MostWithoutLoss(true);
  EXPECT_GT(kept, alone);
  std::vector<float> x = {alone, -alone, alone / 3};
  EXPECT_EQ(Decoded(codec(), Encoded(codec(), x, {}), 3)[0], alone);
  x = {kept, -kept, alone + 1};
  std::vector<float> residual(3, 0.0f);
  std::vector<float> sum = Decoded(codec(), Encoded(codec(), x, residual), 3);
  const std::vector<float> nothing(3, 0.0f);
  for (int again = 0; again < 3; ++again) {
    const std::vector<float> next = Decoded(codec(), Encoded(codec(), nothing, residual), 3);
    for (size_t i = 0; i < 3; ++i) sum[i] += next[i];
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(sum[i], x[i]);
}

TEST_P(EveryCodec, TheLargestNumbersStayFiniteAndPassTheCheck) {
  const size_t n = kBucket + 9;
  const float most = std::numeric_limits<float>::max();
  for (const float other : {most, -most, 0.0f, 1.0f}) {
    std::vector<float> x(n, most);
    for (size_t i = 0; i < n; i += 2) x[i] = other;
    std::vector<float> residual(n, 0.0f);
    const std::vector<std::byte> bytes = Encoded(codec(), x, residual);
    EXPECT_TRUE(codec().Check(bytes, n).ok());
    for (const float v : Decoded(codec(), bytes, n)) ASSERT_TRUE(std::isfinite(v));
    for (const float v : residual) ASSERT_TRUE(std::isfinite(v));
  }
}

TEST_P(EveryCodec, CheckRefusesBytesThatDecodeToNumbersThatAreNotFinite) {
  int refused = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const size_t n = kLengths[seed % kLengths.size()];
    std::vector<std::byte> bytes = Encoded(codec(), SomeNumbers(n, seed));
    Rng rng(seed, RngPurpose::kTest, 2);
    for (uint64_t hits = bytes.empty() ? 0 : rng.NextBelow(4); hits > 0; --hits) {
      bytes[rng.NextBelow(bytes.size())] = static_cast<std::byte>(rng.NextUint32() | 0x78);
    }
    if (seed % 4 == 3) bytes = RandomBytes(bytes.size(), seed);
    bool finite = true;
    for (const float v : Decoded(codec(), bytes, n)) finite = finite && std::isfinite(v);
    const Status status = codec().Check(bytes, n);
    // Scales are checked for what their worst code, or their unused level, would give.
    EXPECT_TRUE(finite || !status.ok()) << "seed " << seed;
    EXPECT_TRUE(codec().id() > CodecId::kBf16 || status.ok() == finite) << "seed " << seed;
    refused += !status.ok();
  }
  EXPECT_GT(refused, 0);
}

TEST_P(EveryCodec, CheckNamesTheNumbersAmongWhichOneIsNotFinite) {
  const size_t group = codec().group();
  const size_t n = 3 * group + 100;
  std::vector<std::byte> bytes = Encoded(codec(), SomeNumbers(n, 50));
  // The first 4 bytes of the third bucket: a number or a scale of any codec, or positions.
  for (size_t i = 0; i < 4; ++i) bytes[codec().EncodedBytes(2 * group) + i] = std::byte{0xff};
  const Status status = codec().Check(bytes, n);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  const std::string range = std::to_string(2 * group) + " to " + std::to_string(3 * group - 1);
  EXPECT_NE(status.message().find(range), std::string::npos) << status.message();
  EXPECT_TRUE(codec().Check(Encoded(codec(), SomeNumbers(n, 50)), n).ok());
}

TEST_P(EveryCodec, CheckRefusesAWrongLength) {
  for (const size_t n : kLengths) {
    std::vector<std::byte> bytes = Encoded(codec(), std::vector<float>(n));
    EXPECT_TRUE(codec().Check(bytes, n).ok());
    bytes.push_back(std::byte{0});
    const Status status = codec().Check(bytes, n);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(std::to_string(bytes.size())), std::string::npos);
    if (n == 0) continue;
    EXPECT_FALSE(codec().Check(std::span(bytes).first(bytes.size() - 2), n).ok());
  }
}

TEST_P(EveryCodec, AnyBytesDecodeToNumbersOfSomeKind) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const size_t n = kLengths[seed % kLengths.size()];
    // An allocation of exactly this length, so that a sanitizer sees a read outside.
    const std::vector<std::byte> bytes = RandomBytes(codec().EncodedBytes(n), seed);
    std::vector<float> out(n, 0.0f);
    codec().Decode(bytes, n, 0, out);
    std::vector<float> sum(n, 0.0f);
    codec().DecodeAdd(bytes, n, 0, 1.0f, sum);
    for (size_t i = 0; i < n; ++i) {
      const float expected = 0.0f + out[i];
      ASSERT_TRUE(SameBitsOrBothNan(sum[i], expected)) << i;
    }
  }
}

TEST_P(EveryCodec, ComputesTheSameBitsAsTheBaseline) {
  const auto index = static_cast<size_t>(codec().id()) - 1;
  const Codec& baseline = *AllCodecs(Isa::kBaseline)[index];
  ASSERT_EQ(baseline.id(), codec().id());
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const size_t n = kLengths[seed % kLengths.size()];
    const std::vector<float> x = SomeNumbers(n, 100 + seed);
    std::vector<float> residual = SomeNumbers(n, 300 + seed);
    std::vector<float> baseline_residual = residual;
    const std::vector<std::byte> bytes = Encoded(codec(), x, residual);
    ASSERT_EQ(bytes, Encoded(baseline, x, baseline_residual));
    ASSERT_TRUE(SameBits(residual, baseline_residual));
    for (const auto& some : {bytes, RandomBytes(bytes.size(), seed)}) {
      ASSERT_TRUE(SameBits(Decoded(codec(), some, n), Decoded(baseline, some, n)));
      std::vector<float> sum = x;
      std::vector<float> baseline_sum = x;
      codec().DecodeAdd(some, n, 0, 0.3f, sum);
      baseline.DecodeAdd(some, n, 0, 0.3f, baseline_sum);
      ASSERT_TRUE(SameBits(sum, baseline_sum));
    }
  }
}

std::string CaseName(const testing::TestParamInfo<CodecCase>& info) {
  const char* levels[] = {"Baseline", "V3", "V4"};
  return levels[static_cast<int>(info.param.isa)] + std::string("_") +
         std::string(info.param.codec->name());
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec, testing::ValuesIn(AllCases()), CaseName);

TEST(CodecList, IsInTheOrderOfItsIds) {
  uint32_t id = 0;
  for (const Codec* codec : AllCodecs()) EXPECT_EQ(static_cast<uint32_t>(codec->id()), ++id);
}

TEST(CodecList, FindsEachByNameAndById) {
  EXPECT_EQ(ChoicesOf(CodecId()).size(), AllCodecs().size());
  for (const Codec* codec : AllCodecs()) {
    EXPECT_EQ(&CodecOf(codec->id()), codec);
    EXPECT_EQ(FindChoice<CodecId>(codec->name()), codec->id());
    EXPECT_EQ(FindCodec(static_cast<uint32_t>(codec->id())).value(), codec);
  }
}

TEST(CodecList, AnUnknownNumberListsTheExistingCodecs) {
  EXPECT_FALSE(FindChoice<CodecId>("int7"));
  const Status status = FindCodec(99u).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  for (const Codec* codec : AllCodecs()) {
    EXPECT_NE(status.message().find(std::string(codec->name())), std::string::npos);
  }
}

}  // namespace
}  // namespace kumo
