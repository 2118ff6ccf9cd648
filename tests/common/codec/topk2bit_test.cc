// Codec topk2bit against its definition, and its levels of whole tensors.
#include "common/codec/topk2bit_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/codec/contribution_encoder.h"

namespace kumo {
namespace {

const Codec& Groups() { return CodecOf(CodecId::kTopk2bit); }

std::vector<float> Normal(size_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> x(n);
  for (float& v : x) v = rng.NextNormal();
  return x;
}

std::vector<uint8_t> BytesOf(const Codec& codec, const std::vector<float>& x) {
  std::vector<uint8_t> bytes(codec.EncodedBytes(x.size()));
  EXPECT_EQ(codec.Encode(x, {}, std::as_writable_bytes(std::span(bytes))), -1);
  return bytes;
}

Status Check(const Codec& codec, const std::vector<uint8_t>& bytes, size_t n) {
  return codec.Check(std::as_bytes(std::span(bytes)), n);
}

std::vector<float> NumbersOf(const Codec& codec, const std::vector<uint8_t>& bytes, size_t n) {
  std::vector<float> out(n);
  codec.Decode(std::as_bytes(std::span(bytes)), n, 0, out);
  return out;
}

// A vector of tensors, cut into chunks.
struct CutVector {
  std::vector<size_t> tensors;  // lengths
  std::vector<size_t> cuts;     // ends of the chunks, multiples of 4,096, and the vector's length

  size_t size() const { return cuts.back(); }
  int TensorOf(size_t i) const {
    int tensor = 0;
    for (size_t end = tensors[0]; i >= end; end += tensors[tensor]) ++tensor;
    return tensor;
  }
  std::unique_ptr<const Codec> CodecOfChunk(size_t begin, size_t end) const {
    std::vector<TensorPiece> pieces;
    size_t first = 0;
    for (size_t t = 0; t < tensors.size(); first += tensors[t++]) {
      const size_t from = std::max(first, begin);
      if (from < std::min(first + tensors[t], end)) {
        pieces.push_back({static_cast<int>(t), from - begin});
      }
    }
    return Groups().ForTensors(std::move(pieces), end - begin);
  }
  // Encodes u = x + residual; the decoded numbers, in ranges of any length.
  std::vector<float> Send(const std::vector<float>& x, std::vector<float>* residual) const {
    std::vector<std::unique_ptr<const Codec>> codecs;
    std::vector<std::vector<std::byte>> codes;
    ContributionEncoder encoder;
    size_t begin = 0;
    for (const size_t end : cuts) {
      codecs.push_back(CodecOfChunk(begin, end));
      codes.emplace_back(codecs.back()->EncodedBytes(end - begin));
      EXPECT_EQ(
          encoder.Encode(*codecs.back(), {}, std::span(x).subspan(begin, end - begin), nullptr,
                         std::span(*residual).subspan(begin, end - begin), codes.back()),
          -1);
      begin = end;
    }
    encoder.Finish();
    std::vector<float> decoded(size());
    begin = 0;
    for (size_t c = 0; c < cuts.size(); begin = cuts[c++]) {
      const size_t n = cuts[c] - begin;
      EXPECT_TRUE(codecs[c]->Check(codes[c], n).ok());
      for (size_t first = 0; first < n; first += 4096) {
        codecs[c]->Decode(
            codes[c], n, first,
            std::span(decoded).subspan(begin + first, std::min<size_t>(4096, n - first)));
      }
    }
    return decoded;
  }
};

// The formulas of docs/formulas.md, word by word.
std::vector<float> Reference(const CutVector& vector, const std::vector<float>& u) {
  std::vector<std::vector<size_t>> sent(vector.tensors.size());
  for (size_t begin = 0; begin < u.size(); begin += 4096) {
    const size_t count = std::min<size_t>(4096, u.size() - begin);
    std::vector<size_t> order(count);
    for (size_t i = 0; i < count; ++i) order[i] = begin + i;
    std::ranges::stable_sort(
        order, [&u](size_t a, size_t b) { return std::fabs(u[a]) > std::fabs(u[b]); });
    order.resize((count + 63) / 64);
    for (const size_t i : order) sent[vector.TensorOf(i)].push_back(i);
  }
  std::vector<float> decoded(u.size(), 0.0f);
  for (std::vector<size_t>& of_tensor : sent) {
    const auto count = static_cast<double>(of_tensor.size());
    double mean = 0.0;
    for (const size_t i : of_tensor) mean += static_cast<double>(u[i]) / count;
    double squares = 0.0;
    for (const size_t i : of_tensor) squares += std::pow(static_cast<double>(u[i]) - mean, 2);
    const double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0.0;
    const double step = deviation == 0.0 ? 1.0 : 6 * deviation / 4;
    std::vector<std::vector<size_t>> of_code(4);
    for (const size_t i : of_tensor) {
      const double place = std::nearbyint((static_cast<double>(u[i]) - mean) / step + 2);
      of_code[static_cast<size_t>(std::clamp(place, 0.0, 3.0))].push_back(i);
    }
    for (const std::vector<size_t>& members : of_code) {
      double level = 0.0;
      for (const size_t i : members) {
        level += static_cast<double>(u[i]) / static_cast<double>(members.size());
      }
      for (const size_t i : members) decoded[i] = static_cast<float>(level);
    }
  }
  return decoded;
}

TEST(Topk2bit, WritesLevelsPositionsAndCodes) {
  // 3 of 130. Their mean is .25, their deviation 2.05 and the step 3.07: codes 3, 1 and 2.
  std::vector<float> x(130, 0.5f);
  x[70] = 2.0f;
  x[71] = -2.0f;
  x[129] = 0.75f;
  const std::vector<uint8_t> bytes = BytesOf(Groups(), x);
  ASSERT_EQ(bytes.size(), 16u + 4u);
  const std::vector<float> levels = {0.0f, -2.0f, 0.75f, 2.0f};
  EXPECT_EQ(std::memcmp(bytes.data(), levels.data(), 16), 0);
  // The high bits: one at 1 + 0, 1 + 1 and 2 + 2.
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin() + 16, bytes.end()),
            (std::vector<uint8_t>{6 | 0x80, 7 | 0x40, 1 | 0x40, 3 | 1 << 2 | 2 << 4}));
  std::vector<float> expected(130, 0.0f);
  for (const size_t i : {70, 71, 129}) expected[i] = x[i];
  EXPECT_EQ(NumbersOf(Groups(), bytes, 130), expected);
}

TEST(Topk2bit, TakesTenBitsForOneOf64Numbers) {
  EXPECT_EQ(Groups().EncodedBytes(4096), 80u + 16u);
  EXPECT_EQ(Groups().EncodedBytes(4097), 2 * 16u + 80u + 4u);
  const auto codec = Groups().ForTensors({{7, 0}, {8, 5000}}, 8192);
  EXPECT_EQ(codec->EncodedBytes(8192), 2 * 80u + 2 * 16u);
  EXPECT_EQ(codec->group(), 4096u);
}

// The search begins where that of the group before has ended.
TEST(Topk2bit, AGroupIsSelectedAsIfItWereAlone) {
  constexpr size_t kGroup = 4096;
  const std::vector<float> scales = {1.0f, 1e-6f, 1e6f, 0.0f, 1.0f, 1e-40f, 1.01f, 2.0f, 0.9f};
  std::vector<float> x = Normal(scales.size() * kGroup + 700, 9);
  for (size_t i = 0; i < scales.size() * kGroup; ++i) {
    x[i] *= scales[i / kGroup];
    if (i / kGroup == 4) x[i] = std::round(x[i]);  // many equal ones
  }
  std::vector<uint8_t> alone;
  for (size_t begin = 0; begin < x.size(); begin += kGroup) {
    const size_t end = std::min(x.size(), begin + kGroup);
    const auto bytes = BytesOf(Groups(), {x.begin() + begin, x.begin() + end});
    alone.insert(alone.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(BytesOf(Groups(), x), alone);
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    for (const Codec* codec : AllCodecs(isa)) {
      if (codec->id() != CodecId::kTopk2bit) continue;
      EXPECT_EQ(BytesOf(*codec, x), alone) << static_cast<int>(isa);
    }
  }
}

// Also where tensors have no number that is sent, or one, or equal ones.
TEST(Topk2bit, LevelsAreOfWholeTensorsWhereverChunksAreCut) {
  const std::vector<size_t> tensors = {20'000, 1, 3, 4'000, 12'000, 64, 500};
  const size_t n = 36'568;
  const std::vector<CutVector> cuts = {{tensors, {n}},
                                       {tensors, {4096, 8192, n}},
                                       {tensors, {8192, 20'480, 24'576, 36'864 - 4096, n}}};
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::vector<float> x = Normal(n, seed);
    std::vector<float> before = Normal(n, seed + 100);
    if (seed % 3 == 1) std::fill_n(x.begin() + 24'004, 12'000, 1.0f);
    if (seed % 3 == 1) std::fill_n(before.begin() + 24'004, 12'000, 0.0f);
    if (seed % 3 == 2) std::fill_n(x.begin() + 100, 21'000, -0.0f);
    std::vector<float> u(n);
    for (size_t i = 0; i < n; ++i) {
      const volatile float kept = 0.95f * before[i];
      u[i] = x[i] + kept;
    }
    const std::vector<float> expected = Reference(cuts[0], u);
    std::vector<float> first_residual;
    std::vector<float> first;
    for (const CutVector& cut : cuts) {
      std::vector<float> residual = before;
      const std::vector<float> decoded = cut.Send(x, &residual);
      if (first.empty()) first = decoded;
      if (first_residual.empty()) first_residual = residual;
      ASSERT_EQ(std::memcmp(decoded.data(), first.data(), n * sizeof(float)), 0);
      ASSERT_EQ(std::memcmp(residual.data(), first_residual.data(), n * sizeof(float)), 0);
    }
    for (size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(first[i], expected[i], 1e-6f) << i;
      ASSERT_EQ(first_residual[i], u[i] - first[i]) << i;
    }
  }
}

TEST(Topk2bit, AChunkByItselfIsCodedAsWholeTensors) {
  const CutVector whole = {{3000, 2000, 3192}, {8192}};
  const auto codec = whole.CodecOfChunk(0, 8192);
  const std::vector<float> x = Normal(8192, 3);
  std::vector<float> residual(8192, 0.0f);
  EXPECT_EQ(NumbersOf(*codec, BytesOf(*codec, x), 8192), whole.Send(x, &residual));
}

TEST(Topk2bit, AContributionWithABadNumberIsReported) {
  const CutVector vector = {{6000, 2192}, {4096, 8192}};
  std::vector<float> x = Normal(8192, 4);
  x[5000] = std::numeric_limits<float>::infinity();
  std::vector<float> residual(8192, 0.0f);
  ContributionEncoder encoder;
  for (const size_t begin : {0, 4096}) {
    const auto codec = vector.CodecOfChunk(begin, begin + 4096);
    std::vector<std::byte> code(codec->EncodedBytes(4096));
    EXPECT_EQ(encoder.Encode(*codec, {}, std::span(x).subspan(begin, 4096), nullptr,
                             std::span(residual).subspan(begin, 4096), code),
              begin == 0 ? -1 : 5000 - 4096);
    if (begin == 0) encoder.Finish();
  }
  encoder.Finish();
}

TEST(Topk2bit, RefusesPositionsThatDoNotAscendAreMissingOrLieBehindTheEnd) {
  std::vector<float> x(130, 0.5f);
  x[70] = 2.0f;
  x[71] = -2.0f;
  x[129] = 0.75f;
  const std::vector<uint8_t> good = BytesOf(Groups(), x);
  ASSERT_TRUE(Check(Groups(), good, 130).ok());
  std::vector<uint8_t> same = good;
  same[17] = 6 | 0x40;  // both are 70
  EXPECT_NE(Check(Groups(), same, 130).message().find("position 70 after 70"), std::string::npos);
  EXPECT_EQ(NumbersOf(Groups(), same, 130)[70], 2.0f);
  std::vector<uint8_t> behind = good;
  behind[18] = 2 | 0x40;
  EXPECT_NE(
      Check(Groups(), behind, 130).message().find("position 130 after 71 among numbers 0 to 129"),
      std::string::npos);
  std::vector<uint8_t> missing = good;
  missing[18] = 1;
  EXPECT_NE(Check(Groups(), missing, 130).message().find("2 positions instead of 3"),
            std::string::npos);
  EXPECT_EQ(NumbersOf(Groups(), missing, 130)[71], -2.0f);
}

TEST(Topk2bit, ALevelThatIsNotFiniteIsNamedByItsTensorsNumbers) {
  const CutVector vector = {{6000, 2192}, {8192}};
  const auto codec = vector.CodecOfChunk(0, 8192);
  std::vector<uint8_t> bytes = BytesOf(*codec, Normal(8192, 5));
  ASSERT_TRUE(Check(*codec, bytes, 8192).ok());
  bytes[bytes.size() - 1] = 0x7f;
  bytes[bytes.size() - 2] = 0xff;
  EXPECT_NE(Check(*codec, bytes, 8192).message().find("among numbers 6000 to 8191"),
            std::string::npos);
}

// From any bytes, with tensors.
TEST(Topk2bit, RangesOfAnyBytesDecodeAsTheWhole) {
  const CutVector vector = {{6000, 1, 1, 3191}, {9193}};
  const auto codec = vector.CodecOfChunk(0, 9193);
  Rng rng(6, RngPurpose::kTest);
  for (int seed = 0; seed < 50; ++seed) {
    std::vector<uint8_t> bytes(codec->EncodedBytes(9193));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.NextUint32());
    const std::vector<float> whole = NumbersOf(*codec, bytes, 9193);
    for (size_t first = 0; first < 9193; first += 4096) {
      std::vector<float> part(std::min<size_t>(4096, 9193 - first));
      codec->Decode(std::as_bytes(std::span(bytes)), 9193, first, part);
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + first, part.size() * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace kumo
