// Selection of the k largest magnitudes of up to 4,096 numbers.
//
// Groups are alike. So the numbers are listed that reach a limit a little below the limit of the
// group before: some more than k. Listing compares 32 numbers, and writes the first two positions
// that reach the limit without a branch; a third one is rare. Among the listed magnitudes a limit
// is searched by halving that exactly k reach.
//
// If the list is shorter than k or much longer, the limit is searched among all numbers. The upper
// 15 bits of each magnitude (exponent and 7 bits) go into an array of 8 KiB. Counting the elements
// that are at least some limit takes a pass of 16-bit comparisons; the largest limit that at least
// k elements reach is found in growing steps and then by halving.
#include "common/codec/topk_kernel.h"

#include <cstddef>
#include <cstdint>

#include "common/base/lanes.h"
#include "common/codec/bucket.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kTopOfBits = 0x7f80;  // above all finite magnitudes' upper bits
// The first search begins so far below the largest magnitude: half an octave.
constexpr uint32_t kBelowTop = 64u << 16;
// How far below the last limit the next search begins, in bits: 5 to 9 %. Of normal numbers, half
// as many again as k reach it.
constexpr uint32_t kMargin = 12u << 16;
constexpr size_t kMostOfK = 4;  // longer lists are not taken

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

// The largest limit with 16 lower bits of 0 that at least k magnitudes reach.
uint32_t RoughLimit(const float* u, size_t count, size_t k, uint32_t guess) {
  alignas(64) int16_t upper[kTopkGroup];
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < count; ++i) {
    upper[i] = static_cast<int16_t>((BitsOf(u[i]) & kMagnitudeBits) >> 16);
  }
  for (size_t i = count; i < kTopkGroup; ++i) upper[i] = -1;
  const int limit = LargestLimit(k, static_cast<int>(guess >> 16), kTopOfBits,
                                 [&upper](int least) { return CountFrom(upper, least); });
  return static_cast<uint32_t>(limit) << 16;
}

// Bit i tells whether |u[i]| reaches the limit; 16 numbers.
KUMO_ALWAYS_INLINE uint32_t Reached(const float* u, uint32_t limit) {
  IntLanes magnitudes;
  IntLanes below;
  for (int p = 0; p < kParts; ++p) {
    magnitudes.part[p] =
        BitsOf(LoadPart(u + p * kPartLanes)) & static_cast<int32_t>(kMagnitudeBits);
    below.part[p] = IntPart{} + (static_cast<int32_t>(limit) - 1);
  }
  return GreaterLanes(magnitudes, below);
}

// Position of the lowest one; 32 if there is none.
KUMO_ALWAYS_INLINE size_t LowestOne(uint32_t bits) {
  return static_cast<size_t>(__builtin_ctzll(bits | uint64_t{1} << 32));
}

constexpr size_t kListRoom = kTopkGroup + 2;  // two positions are always written

// The positions of the numbers that reach the limit, ascending. Returns how many there are.
size_t List(const float* u, size_t count, uint32_t limit, uint16_t* listed) {
  size_t found = 0;
  size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    uint32_t reached = Reached(u + i, limit) | Reached(u + i + kLanes, limit) << kLanes;
    listed[found] = static_cast<uint16_t>(i + LowestOne(reached));
    const uint32_t without_first = reached & (reached - 1u);
    listed[found + 1] = static_cast<uint16_t>(i + LowestOne(without_first));
    const auto all = static_cast<size_t>(__builtin_popcount(reached));
    if (all > 2) {
      reached = without_first;
      for (size_t j = 2; j < all; ++j) {
        reached &= reached - 1u;
        listed[found + j] = static_cast<uint16_t>(i + LowestOne(reached));
      }
    }
    found += all;
  }
  for (; i < count; ++i) {
    listed[found] = static_cast<uint16_t>(i);
    found += (BitsOf(u[i]) & kMagnitudeBits) >= limit ? 1 : 0;
  }
  return found;
}

size_t CountReached(const int32_t* magnitudes, size_t count, uint32_t limit) {
  const auto least = static_cast<int32_t>(limit);
  int32_t reached = 0;
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < count; ++i) reached += magnitudes[i] >= least ? 1 : 0;
  return static_cast<size_t>(reached);
}

void Select(const float* u, size_t count, size_t k, uint32_t top, uint32_t* guess,
            uint16_t* positions) {
  uint16_t listed[kListRoom];
  uint32_t low = *guess;
  size_t found = low > 0 && low <= top ? List(u, count, low, listed) : 0;
  if (found < k || found > kMostOfK * k) {
    low = RoughLimit(u, count, k, top > kBelowTop ? top - kBelowTop : 0);
    found = List(u, count, low, listed);
  }

  int32_t magnitudes[kTopkGroup];
  for (size_t i = 0; i < found; ++i) {
    magnitudes[i] = static_cast<int32_t>(BitsOf(u[listed[i]]) & kMagnitudeBits);
  }
  uint32_t high = top + 1u;  // too high
  size_t reached = found;    // of `low`
  while (reached > k && high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const size_t of_middle = CountReached(magnitudes, found, middle);
    if (of_middle >= k) {
      low = middle;
      reached = of_middle;
    } else {
      high = middle;
    }
  }
  *guess = low > kMargin ? low - kMargin : 0;

  const auto limit = static_cast<int32_t>(low);
  size_t to = 0;
  if (reached == k) {
    for (size_t i = 0; to < k; ++i) {
      positions[to] = listed[i];
      to += magnitudes[i] >= limit ? 1 : 0;
    }
    return;
  }
  size_t equal = k - CountReached(magnitudes, found, low + 1);  // of exactly this magnitude to send
  for (size_t i = 0; to < k; ++i) {
    if (magnitudes[i] < limit) continue;
    if (magnitudes[i] == limit) {
      if (equal == 0) continue;
      --equal;
    }
    positions[to++] = listed[i];
  }
}

// subtracts: whether there is an array to subtract.
template <bool subtracts>
KUMO_ALWAYS_INLINE uint32_t AddFrom(const float* x, const float* subtracted, float* residual,
                                    float factor, size_t count, float* u) {
  AbsMax top;
  ForEachBlock(
      count,
      [&top, x, subtracted, residual, factor, u](size_t begin, size_t end) KUMO_INLINE_LAMBDA {
        size_t i = begin;
        for (; i + kLanes <= end; i += kLanes) {
          for (int p = 0; p < kParts; ++p) {
            const size_t at = i + p * kPartLanes;
            FloatPart sum = LoadPart(x + at);
            if constexpr (subtracts) sum -= LoadPart(subtracted + at);
            sum += factor * LoadPart(residual + at);
            StorePart(sum, u + at);
            StorePart(sum + 0.0f, residual + at);
            top.Add(p, sum);
          }
        }
        for (; i < end; ++i) {
          const float from = subtracts ? x[i] - subtracted[i] : x[i];
          u[i] = from + factor * residual[i];
          residual[i] = u[i] + 0.0f;
          top.Add(u[i]);
        }
      },
      x, subtracts ? subtracted : x, static_cast<const float*>(residual));
  return top.Bits();
}

uint32_t Add(const float* x, const float* minus, float* residual, float factor, size_t count,
             float* u) {
  return minus != nullptr ? AddFrom<true>(x, minus, residual, factor, count, u)
                          : AddFrom<false>(x, nullptr, residual, factor, count, u);
}

uint32_t Largest(const float* x, size_t count) { return AbsMaxBits(x, count); }

}  // namespace

extern const TopkKernel kTopkKernel;
constinit const TopkKernel kTopkKernel = {Add, Largest, Select};

}  // namespace kumo::KUMO_ISA
