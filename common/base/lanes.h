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
