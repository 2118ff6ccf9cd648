// Vector lanes for kernel sources: 16 lanes of float32 as one, two or four vectors of the level's
// width. Sums run lane by lane, and then over the lanes in a fixed order, so every level computes
// the same bits.
#pragma once

#include <cstdint>

#include "common/base/vector_loop.h"

namespace kumo::KUMO_ISA {

#if defined(__AVX512F__)
constexpr int kPartLanes = 16;
#elif defined(__AVX2__)
constexpr int kPartLanes = 8;
#else
constexpr int kPartLanes = 4;
#endif
constexpr int kLanes = 16;
constexpr int kParts = kLanes / kPartLanes;

typedef float FloatPart __attribute__((vector_size(kPartLanes * 4)));
typedef int32_t IntPart __attribute__((vector_size(kPartLanes * 4)));

struct FloatLanes {
  FloatPart part[kParts] = {};
};
struct IntLanes {
  IntPart part[kParts] = {};
};

KUMO_ALWAYS_INLINE FloatPart LoadPart(const float* from) {
  FloatPart part;
  __builtin_memcpy(&part, from, sizeof(part));
  return part;
}
KUMO_ALWAYS_INLINE void StorePart(FloatPart part, float* to) {
  __builtin_memcpy(to, &part, sizeof(part));
}

KUMO_ALWAYS_INLINE IntPart BitsOf(FloatPart part) { return __builtin_bit_cast(IntPart, part); }

// Bit l tells whether lane l of `a` is greater than lane l of `b`.
KUMO_ALWAYS_INLINE uint32_t GreaterLanes(const IntLanes& a, const IntLanes& b) {
  uint32_t bits = 0;
  for (int p = 0; p < kParts; ++p) {
#if defined(__AVX512F__)
    constexpr int kGreater = 6;
    bits = __builtin_ia32_cmpd512_mask(a.part[p], b.part[p], kGreater, 0xffffu);
#elif defined(__x86_64__)
    const auto greater = __builtin_bit_cast(FloatPart, a.part[p] > b.part[p]);
#if defined(__AVX2__)
    const int of_part = __builtin_ia32_movmskps256(greater);
#else
    const int of_part = __builtin_ia32_movmskps(greater);
#endif
    bits |= static_cast<uint32_t>(of_part) << (p * kPartLanes);
#else
    for (int l = 0; l < kPartLanes; ++l) {
      bits |= (a.part[p][l] > b.part[p][l] ? 1u : 0u) << (p * kPartLanes + l);
    }
#endif
  }
  return bits;
}

// Non-temporal store, past the caches, for memory that is not read again soon: the cache line is
// not fetched first. `to` is aligned to 64 bytes. Fence before another thread reads the memory.
KUMO_ALWAYS_INLINE void StreamPart(FloatPart part, float* to) {
#if defined(__clang__)
  __builtin_nontemporal_store(part, reinterpret_cast<FloatPart*>(to));
#elif defined(__AVX512F__)
  __builtin_ia32_movntps512(to, part);
#elif defined(__AVX2__)
  __builtin_ia32_movntps256(to, part);
#elif defined(__x86_64__)
  __builtin_ia32_movntps(to, part);
#else
  StorePart(part, to);
#endif
}

// Stores lanes of -128 .. 127 as 16 bytes.
KUMO_ALWAYS_INLINE void StoreBytes(const IntLanes& lanes, unsigned char* to) {
#if defined(__x86_64__)
#if defined(__AVX512F__)
  typedef char Bytes __attribute__((vector_size(16)));
  const auto bytes = __builtin_ia32_pmovdb512_mask(lanes.part[0], Bytes{}, -1);
#elif defined(__AVX2__)
  typedef int32_t Words __attribute__((vector_size(16)));
  typedef int16_t Shorts __attribute__((vector_size(16)));
  // Numbers 0-3 and 8-11, 4-7 and 12-15, as each half of the vectors is packed by itself.
  const auto shorts = __builtin_ia32_packssdw256(lanes.part[0], lanes.part[1]);
  Shorts halves[2];
  __builtin_memcpy(halves, &shorts, sizeof(halves));
  const auto mixed = __builtin_bit_cast(Words, __builtin_ia32_packsswb128(halves[0], halves[1]));
  const Words bytes = __builtin_shufflevector(mixed, mixed, 0, 2, 1, 3);
#else
  const auto bytes =
      __builtin_ia32_packsswb128(__builtin_ia32_packssdw128(lanes.part[0], lanes.part[1]),
                                 __builtin_ia32_packssdw128(lanes.part[2], lanes.part[3]));
#endif
  __builtin_memcpy(to, &bytes, kLanes);
#else
  int32_t all[kLanes];
  __builtin_memcpy(all, lanes.part, sizeof(all));
  for (int l = 0; l < kLanes; ++l) to[l] = static_cast<unsigned char>(all[l]);
#endif
}

// The sum of the lanes by pairwise halving.
KUMO_ALWAYS_INLINE float SumOfLanes(const FloatLanes& lanes) {
  alignas(64) float sum[kLanes];
  __builtin_memcpy(sum, lanes.part, sizeof(sum));
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) sum[l] += sum[l + width];
  }
  return sum[0];
}

}  // namespace kumo::KUMO_ISA
