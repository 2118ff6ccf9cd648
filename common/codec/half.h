// Formats of 16 bits for kernel sources: the loops of fp16 and bf16 over a bucket.
#pragma once

#include <cstdint>

#include "common/codec/bucket.h"

namespace kumo::KUMO_ISA {

template <typename Half>
struct HalfFormat {
  static constexpr bool kLossless = false;
  static constexpr size_t kGranule = kShortGranule;
  static constexpr size_t Bytes(size_t count) { return 2 * count; }

  KUMO_ALWAYS_INLINE static uint16_t Load(const unsigned char* in, size_t i) {
    uint16_t bits;
    __builtin_memcpy(&bits, in + 2 * i, 2);
    return bits;
  }

  KUMO_ALWAYS_INLINE static void Encode(const float* u, size_t count, uint32_t, float* residual,
                                        unsigned char* out) {
    if (residual == nullptr) {
      KUMO_VECTOR_LOOP
      for (size_t i = 0; i < count; ++i) {
        const uint16_t bits = Half::FromFloat(u[i]);
        __builtin_memcpy(out + 2 * i, &bits, 2);
      }
      return;
    }
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) {
      const uint16_t bits = Half::FromFloat(u[i]);
      __builtin_memcpy(out + 2 * i, &bits, 2);
      residual[i] = u[i] - Half::ToFloat(bits);
    }
  }

  KUMO_ALWAYS_INLINE static void Decode(const unsigned char* in, size_t count, float* out) {
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) out[i] = Half::ToFloat(Load(in, i));
  }

  KUMO_ALWAYS_INLINE static void DecodeAdd(const unsigned char* in, size_t count, float scale,
                                           float* sum) {
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) sum[i] += scale * Half::ToFloat(Load(in, i));
  }

  KUMO_ALWAYS_INLINE static bool Finite(const unsigned char* in, size_t count) {
    uint16_t top = 0;
    KUMO_VECTOR_LOOP
    for (size_t i = 0; i < count; ++i) {
      const uint16_t magnitude = static_cast<uint16_t>(Load(in, i) & 0x7fffu);
      top = magnitude > top ? magnitude : top;
    }
    return top < Half::kInfinity;
  }
};

}  // namespace kumo::KUMO_ISA
