// Selection of the k largest magnitudes of up to 4,096 numbers.
//
// The upper 15 bits of each magnitude (exponent and 7 bits) go into an array of 8 KiB. Counting the
// elements that are at least some limit takes a pass of 16-bit comparisons; the largest limit that
// at least k elements reach is searched from that of the group before, which is near, in growing
// steps and then by halving. The few elements that reach the limit are listed, four compared at
// once in a 64-bit word; among those, the limit is searched in all 31 bits.
#include "common/codec/topk_kernel.h"

#include <cstddef>
#include <cstdint>

#include "common/codec/bucket.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kTopOfBits = 0x7f80;  // above all finite magnitudes' upper bits

size_t CountFrom(const int16_t* upper, int limit) {
  const auto least = static_cast<int16_t>(limit);
  int16_t count = 0;  // at most 4,096
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < kTopkGroup; ++i) {
    count = static_cast<int16_t>(count + (upper[i] >= least ? 1 : 0));
  }
  return static_cast<size_t>(count);
}

// The largest limit, at least 0, that at least k of the elements reach. Requires k <= elements.
template <typename CountOf>
int LargestLimit(size_t k, int guess, int top, CountOf count_of) {
  int low = guess < 0 ? 0 : guess < top ? guess : top - 1;
  int high = top;  // too high
  int step = 4;
  if (count_of(low) >= k) {
    while (low + step < top && count_of(low + step) >= k) {
      low += step;
      step *= 2;
    }
    high = low + step < top ? low + step : top;
  } else {
    high = low;
    while (low = high - step < 0 ? 0 : high - step, low > 0 && count_of(low) < k) {
      high = low;
      step *= 2;
    }
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (count_of(middle) >= k ? low : high) = middle;
  }
  return low;
}

void Select(const float* u, size_t count, size_t k, int* guess, uint16_t* positions) {
  alignas(64) int16_t upper[kTopkGroup];
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < count; ++i) {
    upper[i] = static_cast<int16_t>((BitsOf(u[i]) & kMagnitudeBits) >> 16);
  }
  for (size_t i = count; i < kTopkGroup; ++i) upper[i] = -1;
  const int limit =
      LargestLimit(k, *guess, kTopOfBits, [&upper](int least) { return CountFrom(upper, least); });
  *guess = limit;

  // (2^15 + a) - b has its highest bit set if a >= b; all lanes stay apart. Elements of -1 do not
  // count: they come last, and are cut off by their position.
  uint16_t listed[kTopkGroup];
  uint32_t magnitudes[kTopkGroup];
  size_t found = 0;
  constexpr uint64_t kLanesOf = 0x0001000100010001u;
  const uint64_t least = static_cast<uint64_t>(limit) * kLanesOf;
  for (size_t i = 0; i < count; i += 4) {
    uint64_t four;
    __builtin_memcpy(&four, upper + i, sizeof(four));
    const uint64_t reached = (((four | 0x8000u * kLanesOf) - least) & (0x8000u * kLanesOf));
    if (reached == 0) continue;
    for (size_t j = i; j < i + 4 && j < count; ++j) {
      if (upper[j] < limit) continue;
      listed[found] = static_cast<uint16_t>(j);
      magnitudes[found++] = BitsOf(u[j]) & kMagnitudeBits;
    }
  }

  // The largest magnitude that at least k elements reach.
  uint32_t low = static_cast<uint32_t>(limit) << 16;
  uint32_t high = low + 0x10000u;
  const auto count_above = [&magnitudes, found](uint32_t bits) {
    size_t reached = 0;
    for (size_t i = 0; i < found; ++i) reached += magnitudes[i] >= bits ? 1 : 0;
    return reached;
  };
  while (found > k && high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    (count_above(middle) >= k ? low : high) = middle;
  }
  size_t equal = k - count_above(low + 1);  // elements of exactly this magnitude to send
  size_t to = 0;
  for (size_t i = 0; i < found; ++i) {
    if (magnitudes[i] < low) continue;
    if (magnitudes[i] == low) {
      if (equal == 0) continue;
      --equal;
    }
    positions[to++] = listed[i];
  }
}

uint32_t Add(const float* x, const float* residual, float factor, size_t count, float* u) {
  if (residual == nullptr) {
    __builtin_memcpy(u, x, count * sizeof(float));
    return AbsMaxBits(x, count);
  }
  if (factor == 1.0f) return AddResidual(x, residual, count, u);
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < count; ++i) u[i] = factor * residual[i];
  return AddResidual(x, u, count, u);
}

void Keep(const float* u, size_t count, float* residual) {
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < count; ++i) residual[i] = u[i] - (-0.0f);
}

}  // namespace

extern const TopkKernel kTopkKernel;
constinit const TopkKernel kTopkKernel = {Add, Select, Keep};

}  // namespace kumo::KUMO_ISA
