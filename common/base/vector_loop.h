// Loop helpers for kernel sources: vectorisation of loops over independent elements, prefetching of
// long arrays, and bit casts. common/base/isa.h says what a kernel source may include.
#pragma once

#include <cstddef>
#include <cstdint>

// Before a `for`: no iteration accesses memory that another iteration writes. Arrays may be
// identical, but must not overlap otherwise.
#if defined(__clang__)
#define KUMO_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define KUMO_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

#define KUMO_ALWAYS_INLINE [[gnu::always_inline]] inline
// After a lambda's parameters.
#define KUMO_INLINE_LAMBDA __attribute__((always_inline))

namespace kumo::KUMO_ISA {

KUMO_ALWAYS_INLINE uint32_t BitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }
KUMO_ALWAYS_INLINE float FloatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Prefetch distance and block length, in elements. Prefetching a whole bucket at once fills the
// queue of outstanding cache lines and stalls (measured: 20 % slower).
constexpr size_t kAhead = 512;
constexpr size_t kBlock = 64;

// Fetches the line at `address` into the second cache. Prefetches into the first one wait in its
// short queue of misses: on AMD's processors a pass over two arrays then takes 1.5 times as long.
KUMO_ALWAYS_INLINE void PrefetchLine(const void* address) {
  constexpr int kToRead = 0;
  constexpr int kSecondCache = 2;
  __builtin_prefetch(address, kToRead, kSecondCache);
}

// Prefetching past the end of an array is harmless.
template <typename T>
KUMO_ALWAYS_INLINE void PrefetchBlock(const T* at) {
  const char* bytes = reinterpret_cast<const char*>(at + kAhead);
  for (size_t line = 0; line < kBlock * sizeof(T); line += 64) PrefetchLine(bytes + line);
}

// Calls body(begin, end) for blocks of kBlock elements and a shorter last one, prefetching the
// arrays `ahead`, which have `count` elements. The body is a KUMO_INLINE_LAMBDA.
template <typename Body, typename... T>
KUMO_ALWAYS_INLINE void ForEachBlock(size_t count, Body body, const T*... ahead) {
  const size_t whole = count / kBlock * kBlock;
  for (size_t begin = 0; begin < whole; begin += kBlock) {
    (PrefetchBlock(ahead + begin), ...);
    body(begin, begin + kBlock);
  }
  if (whole < count) body(whole, count);
}

}  // namespace kumo::KUMO_ISA
