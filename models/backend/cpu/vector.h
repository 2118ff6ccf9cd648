// Vectors of the level's own width, and the size of a tile of them that the registers hold, for
// kernel sources. All in namespace KUMO_ISA (see common/base/isa.h).
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

KUMO_ALWAYS_INLINE Vector Load(const float* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}
KUMO_ALWAYS_INLINE void Store(Vector vector, float* to) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}
// Fewer than kWidth numbers; the others are zero, and not stored.
KUMO_ALWAYS_INLINE Vector LoadFirst(const float* from, int64_t count) {
  Vector vector{};
  for (int64_t i = 0; i < count; ++i) vector[i] = from[i];
  return vector;
}
KUMO_ALWAYS_INLINE void StoreFirst(Vector vector, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = vector[i];
}
// Minus zero leaves every number as it is, so the compiler drops it and broadcasts from memory;
// plus zero would cost an addition (-0 + 0 is 0) and a shuffle in the innermost loops.
KUMO_ALWAYS_INLINE Vector Broadcast(float value) { return value - Vector{}; }

// Calls body<n>(), n being the numbers of a vector that belong to one position: all if there are
// more of them (a multiple of 16), or 1, 4 or 8.
template <typename Body>
KUMO_ALWAYS_INLINE void WithLanes(int64_t lanes, const Body& body) {
  if (lanes >= kWidth) return body.template operator()<kWidth>();
  if (lanes == 1) return body.template operator()<1>();
  if constexpr (kWidth > 8) {
    if (lanes == 8) return body.template operator()<8>();
  }
  if constexpr (kWidth > 4) body.template operator()<4>();
}

// A position's lanes, or part of them.
template <int kLanes>
struct Lanes {
  typedef float Floats __attribute__((vector_size(kLanes * 4)));
  typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));
  typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

  KUMO_ALWAYS_INLINE static Floats Load(const float* from) {
    Floats floats;
    __builtin_memcpy(&floats, from, sizeof(floats));
    return floats;
  }
  KUMO_ALWAYS_INLINE static void Store(Floats floats, float* to) {
    __builtin_memcpy(to, &floats, sizeof(floats));
  }
};

// Calls body<n>() for a size 1 <= n <= kMost that is known at run time only: the sizes of a tile in
// registers are template arguments.
template <int kMost, typename Body>
KUMO_ALWAYS_INLINE void WithSize(int64_t n, const Body& body) {
  if constexpr (kMost > 1) {
    if (n < kMost) return WithSize<kMost - 1>(n, body);
  }
  body.template operator()<kMost>();
}

typedef float FourFloats __attribute__((vector_size(16)));
typedef float EightFloats __attribute__((vector_size(32)));
typedef float SixteenFloats __attribute__((vector_size(64)));

// Numbers 0, 2, 4, ... of two vectors.
KUMO_ALWAYS_INLINE FourFloats EvenOnes(FourFloats a, FourFloats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
KUMO_ALWAYS_INLINE EightFloats EvenOnes(EightFloats a, EightFloats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
}
KUMO_ALWAYS_INLINE SixteenFloats EvenOnes(SixteenFloats a, SixteenFloats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
// Numbers 1, 3, 5, ...
KUMO_ALWAYS_INLINE FourFloats OddOnes(FourFloats a, FourFloats b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}
KUMO_ALWAYS_INLINE EightFloats OddOnes(EightFloats a, EightFloats b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
KUMO_ALWAYS_INLINE SixteenFloats OddOnes(SixteenFloats a, SixteenFloats b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
// a[0], b[0], a[1], b[1], ...: the first half of all, and the second one.
KUMO_ALWAYS_INLINE FourFloats FirstOfBoth(FourFloats a, FourFloats b) {
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
KUMO_ALWAYS_INLINE EightFloats FirstOfBoth(EightFloats a, EightFloats b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
KUMO_ALWAYS_INLINE SixteenFloats FirstOfBoth(SixteenFloats a, SixteenFloats b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
KUMO_ALWAYS_INLINE FourFloats LastOfBoth(FourFloats a, FourFloats b) {
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
KUMO_ALWAYS_INLINE EightFloats LastOfBoth(EightFloats a, EightFloats b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
KUMO_ALWAYS_INLINE SixteenFloats LastOfBoth(SixteenFloats a, SixteenFloats b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

// The sum of the lanes: halves added to halves.
KUMO_ALWAYS_INLINE float SumOfVector(FourFloats x) { return (x[0] + x[2]) + (x[1] + x[3]); }
KUMO_ALWAYS_INLINE float SumOfVector(EightFloats x) {
  return SumOfVector(__builtin_shufflevector(x, x, 0, 1, 2, 3) +
                     __builtin_shufflevector(x, x, 4, 5, 6, 7));
}
KUMO_ALWAYS_INLINE float SumOfVector(SixteenFloats x) {
  return SumOfVector(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
}

// Lanes of `yes` if the mask's lane is all ones, of `no` if it is zero.
KUMO_ALWAYS_INLINE Vector Select(IntVector mask, Vector yes, Vector no) { return mask ? yes : no; }

}  // namespace kumo::KUMO_ISA
