// For kernel sources: vectors of the level's own width, and how large a tile of them the registers
// hold. All in namespace KUMO_ISA (see common/base/isa.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/vector_loop.h"

namespace kumo::KUMO_ISA {

#if defined(__AVX512F__)
constexpr int kWidth = 16;       // floats of a vector
constexpr int kTileRows = 6;     // product tile: rows x vectors accumulators,
constexpr int kTileVectors = 4;  // plus the vectors of one operand and one broadcast
constexpr int kOuterRows = 5;    // tile of outer products: rows x columns accumulators
constexpr int kOuterColumns = 5;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;
constexpr int kOuterRows = 4;
constexpr int kOuterColumns = 3;
#else
constexpr int kWidth = 4;
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;
constexpr int kOuterRows = 4;
constexpr int kOuterColumns = 3;
#endif

typedef float Vector __attribute__((vector_size(kWidth * 4)));
typedef int32_t IntVector __attribute__((vector_size(kWidth * 4)));
typedef uint8_t ByteVector __attribute__((vector_size(kWidth)));

KUMO_ALWAYS_INLINE Vector Load(const float* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}
KUMO_ALWAYS_INLINE void Store(Vector vector, float* to) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}
// Minus zero leaves every number as it is, so the compiler drops it and broadcasts from memory;
// plus zero would cost an addition (-0 + 0 is 0) and a shuffle in the innermost loops.
KUMO_ALWAYS_INLINE Vector Broadcast(float value) { return value - Vector{}; }

// The sum of the lanes: halves added to halves.
KUMO_ALWAYS_INLINE float SumOfVector(Vector vector) {
  alignas(64) float lanes[kWidth];
  __builtin_memcpy(lanes, &vector, sizeof(lanes));
#pragma GCC unroll 8
  for (int width = kWidth / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}

// Two masks' worth: where `mask` is all ones `yes`, where it is zero `no`.
KUMO_ALWAYS_INLINE Vector Select(IntVector mask, Vector yes, Vector no) { return mask ? yes : no; }

}  // namespace kumo::KUMO_ISA
