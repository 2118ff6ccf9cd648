#include "common/codec/topk_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include <glog/logging.h>

#define KUMO_ISA on_host
#define KUMO_FORMULA inline
#include "common/codec/topk_layout.h"
#undef KUMO_FORMULA
#undef KUMO_ISA

namespace kumo {
namespace {

using Layout = on_host::TopkLayout;

// Two positions of 12 bits in 3 bytes, the first in the lowest bits.
void PutPosition(std::byte* positions, size_t j, uint32_t position) {
  std::byte* const at = positions + j / 2 * 3;
  if (j % 2 == 0) {
    at[0] = static_cast<std::byte>(position);
    at[1] = static_cast<std::byte>(position >> 8);
  } else {
    at[1] |= static_cast<std::byte>(position << 4);
    at[2] = static_cast<std::byte>(position >> 4);
  }
}

uint32_t PositionAt(const std::byte* positions, size_t j) {
  const std::byte* const at = positions + j / 2 * 3;
  const auto byte = [at](int i) { return static_cast<uint32_t>(at[i]); };
  return j % 2 == 0 ? byte(0) | (byte(1) & 15u) << 8 : byte(1) >> 4 | byte(2) << 4;
}

}  // namespace

size_t TopkCodec::GroupBytes(size_t count) const {
  const size_t kept = Layout::Kept(settings_, count);
  return Layout::PositionBytes(kept) + Layout::Aligned(values_.EncodedBytes(kept));
}

size_t TopkCodec::EncodedBytes(size_t n) const {
  const size_t rest = n % kTopkGroup;
  return n / kTopkGroup * GroupBytes(kTopkGroup) + (rest == 0 ? 0 : GroupBytes(rest));
}

int64_t TopkCodec::EncodeIn(const EncodeContext& context, std::span<const float> x,
                            std::span<float> residual, std::span<std::byte> out) const {
  CHECK_EQ(out.size(), EncodedBytes(x.size()));
  CHECK(residual.empty() || residual.size() == x.size());
  alignas(64) std::array<float, kTopkGroup> sums;
  std::array<uint16_t, kTopkGroup> positions;
  alignas(64) std::array<float, kTopkGroup> values;
  alignas(64) std::array<float, kTopkGroup> sent;
  uint32_t guess = 0;
  for (size_t begin = 0; begin < x.size(); begin += kTopkGroup) {
    const size_t count = std::min(kTopkGroup, x.size() - begin);
    float* const rest = residual.empty() ? nullptr : residual.data() + begin;
    const float* u = x.data() + begin;
    uint32_t top;
    if (rest != nullptr) {
      top = kernel_.add(u, nullptr, rest, 1.0f, count, sums.data());
      u = sums.data();
    } else {
      top = kernel_.largest(u, count);
    }
    if (top > std::bit_cast<uint32_t>(context.most)) {
      const float* const bad = std::find_if(
          u, u + count, [&context](float v) { return !(std::fabs(v) <= context.most); });
      return static_cast<int64_t>(begin) + (bad - u);
    }
    const size_t kept = Layout::Kept(settings_, count);
    kernel_.select(u, count, kept, top, &guess, positions.data());
    const std::span<std::byte> code = out.first(GroupBytes(count));
    std::fill(code.begin(), code.end(), std::byte{0});
    for (size_t j = 0; j < kept; ++j) {
      PutPosition(code.data(), j, positions[j]);
      values[j] = u[positions[j]];
    }
    const std::span<std::byte> coded =
        code.subspan(Layout::PositionBytes(kept), values_.EncodedBytes(kept));
    EncodeContext of_values = context;
    of_values.first += begin;
    const std::span<const float> chosen(values.data(), kept);
    CHECK_EQ(values_.EncodeIn(of_values, chosen, {}, coded), -1) << "no number is above the limit";
    if (rest != nullptr) {
      values_.Decode(coded, kept, 0, {sent.data(), kept});
      for (size_t j = 0; j < kept; ++j) rest[positions[j]] = values[j] - sent[j];
    }
    out = out.subspan(code.size());
  }
  return -1;
}

Status TopkCodec::Check(std::span<const std::byte> encoded, size_t n) const {
  if (encoded.size() != EncodedBytes(n)) {
    return InvalidArgument("topk: " + std::to_string(n) + " numbers take " +
                           std::to_string(EncodedBytes(n)) + " bytes, not " +
                           std::to_string(encoded.size()));
  }
  for (size_t begin = 0; begin < n; begin += kTopkGroup) {
    const size_t count = std::min(kTopkGroup, n - begin);
    const size_t kept = Layout::Kept(settings_, count);
    const std::span<const std::byte> code = encoded.first(GroupBytes(count));
    encoded = encoded.subspan(code.size());
    const std::string among = " among numbers " + std::to_string(begin) + " to " +
                              std::to_string(begin + count - 1) + " of the chunk";
    int64_t before = -1;
    for (size_t j = 0; j < kept; ++j) {
      const int64_t position = PositionAt(code.data(), j);
      if (position <= before || position >= static_cast<int64_t>(count)) {
        return InvalidArgument("topk: position " + std::to_string(position) + " after " +
                               std::to_string(before) + among);
      }
      before = position;
    }
    const Status values =
        values_.Check(code.subspan(Layout::PositionBytes(kept), values_.EncodedBytes(kept)), kept);
    if (!values.ok()) return InvalidArgument("topk: a value that is not finite" + among);
  }
  return OkStatus();
}

// Positions that do not ascend are left out, so that any bytes mean the same numbers everywhere.
template <typename Use>
void TopkCodec::ForEachSent(std::span<const std::byte> encoded, size_t n, size_t first,
                            size_t count, Use use) const {
  CHECK_EQ(encoded.size(), EncodedBytes(n));
  CHECK_EQ(first % kTopkGroup, 0u);
  CHECK(first <= n && count <= n - first);
  std::array<float, kBucket> values;
  const size_t end = first + count;
  for (size_t begin = first; begin < end; begin += kTopkGroup) {
    const size_t of_group = std::min(kTopkGroup, n - begin);
    const size_t kept = Layout::Kept(settings_, of_group);
    const std::byte* const code = encoded.data() + begin / kTopkGroup * GroupBytes(kTopkGroup);
    const std::span<const std::byte> coded(code + Layout::PositionBytes(kept),
                                           values_.EncodedBytes(kept));
    int64_t before = -1;
    size_t decoded = 0;  // the bucket of values after the last decoded one
    for (size_t j = 0; j < kept; ++j) {
      const int64_t position = PositionAt(code, j);
      if (position <= before || position >= static_cast<int64_t>(of_group)) continue;
      before = position;
      const size_t at = begin + static_cast<size_t>(position);
      if (at >= end) break;
      const size_t bucket = j / kBucket;
      if (decoded != bucket + 1) {
        const size_t begin_of_values = bucket * kBucket;
        values_.Decode(coded, kept, begin_of_values,
                       {values.data(), std::min(kBucket, kept - begin_of_values)});
        decoded = bucket + 1;
      }
      use(at - first, values[j % kBucket]);
    }
  }
}

void TopkCodec::DecodeAdd(std::span<const std::byte> encoded, size_t n, size_t first, float scale,
                          std::span<float> sum) const {
  ForEachSent(encoded, n, first, sum.size(),
              [scale, sum](size_t i, float value) { sum[i] += scale * value; });
}

// Numbers that were not sent are -0, which changes no sum.
void TopkCodec::Decode(std::span<const std::byte> encoded, size_t n, size_t first,
                       std::span<float> out) const {
  std::fill(out.begin(), out.end(), -0.0f);
  ForEachSent(encoded, n, first, out.size(), [out](size_t i, float value) { out[i] = value; });
}

}  // namespace kumo
