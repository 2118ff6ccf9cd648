// For the codecs' kernel sources: the loops over buckets that all formats share.
//
// A format is a struct of static functions over one bucket of `count` numbers (kBucket, or fewer at
// a chunk's end):
//   kId, kName, kHelp, kLossless, kCodesWeights, kLargest, Bytes(count)
//   Encode(u, count, absmax_bits, residual, out): u is finite; residual <- u - decode(out) unless
//       it is null; absmax_bits are the bits of the largest |u|
//   Decode(in, count, out), DecodeAdd(in, count, scale, sum)
//   Finite(in, count): every decoded number is
// Encoding reads x and the residual from memory once: u goes through a buffer of 2 KiB, which stays
// in the first cache; looking for numbers that are not finite rides along with the maximum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/vector_loop.h"
#include "common/codec/kernel.h"

#define KUMO_FORMULA KUMO_ALWAYS_INLINE
#include "common/codec/formulas.h"

namespace kumo::KUMO_ISA {

constexpr size_t kBucket = kCodecBucket;
constexpr float kLargestFloat = __FLT_MAX__;

KUMO_ALWAYS_INLINE uint32_t AbsMaxBits(const float* x, size_t count) {
  uint32_t top = 0;
  ForEachBlock(
      count,
      [&top, x](size_t begin, size_t end) KUMO_INLINE_LAMBDA {
        uint32_t most = top;
        KUMO_VECTOR_LOOP
        for (size_t i = begin; i < end; ++i) {
          const uint32_t magnitude = BitsOf(x[i]) & kMagnitudeBits;
          most = magnitude > most ? magnitude : most;
        }
        top = most;
      },
      x);
  return top;
}

// u = x + residual and the bits of the largest |u|.
KUMO_ALWAYS_INLINE uint32_t AddResidual(const float* x, const float* residual, size_t count,
                                        float* u) {
  uint32_t top = 0;
  ForEachBlock(
      count,
      [&top, x, residual, u](size_t begin, size_t end) KUMO_INLINE_LAMBDA {
        uint32_t most = top;
        KUMO_VECTOR_LOOP
        for (size_t i = begin; i < end; ++i) {
          const float sum = x[i] + residual[i];
          u[i] = sum;
          const uint32_t magnitude = BitsOf(sum) & kMagnitudeBits;
          most = magnitude > most ? magnitude : most;
        }
        top = most;
      },
      x, residual);
  return top;
}

// Infinity and NaN are above any number by their bits.
inline int64_t FirstAbove(uint32_t most_bits, const float* u, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if ((BitsOf(u[i]) & kMagnitudeBits) > most_bits) return static_cast<int64_t>(i);
  }
  return -1;
}

// Encodes one bucket; returns as Codec::EncodeUpTo does. With a constant count (a full bucket) the
// loops inside have constant lengths.
template <typename Format>
KUMO_ALWAYS_INLINE int64_t EncodeBucket(const float* x, float* residual, size_t count,
                                        uint32_t most_bits, unsigned char* out) {
  alignas(64) float buffer[kBucket];
  const float* u = x;
  uint32_t top;
  if (residual != nullptr) {
    top = AddResidual(x, residual, count, buffer);
    u = buffer;
  } else {
    top = AbsMaxBits(x, count);
  }
  if (top > most_bits) return FirstAbove(most_bits, u, count);
  Format::Encode(u, count, top, residual, out);
  return -1;
}

template <typename Format>
int64_t EncodeChunk(const float* x, float* residual, size_t n, float most, unsigned char* out) {
  const uint32_t most_bits = BitsOf(most);
  const size_t full = n / kBucket * kBucket;
  for (size_t i = 0; i < full; i += kBucket) {
    int64_t bad;
    if (residual != nullptr) {
      bad = EncodeBucket<Format>(x + i, residual + i, kBucket, most_bits, out);
    } else {
      bad = EncodeBucket<Format>(x + i, nullptr, kBucket, most_bits, out);
    }
    if (bad >= 0) return static_cast<int64_t>(i) + bad;
    out += Format::Bytes(kBucket);
  }
  if (full == n) return -1;
  const int64_t bad = EncodeBucket<Format>(
      x + full, residual == nullptr ? nullptr : residual + full, n - full, most_bits, out);
  return bad < 0 ? -1 : static_cast<int64_t>(full) + bad;
}

template <typename Format>
void DecodeChunk(const unsigned char* in, size_t n, float* out) {
  size_t i = 0;
  for (; i + kBucket <= n; i += kBucket, in += Format::Bytes(kBucket)) {
    Format::Decode(in, kBucket, out + i);
  }
  if (i < n) Format::Decode(in, n - i, out + i);
}

template <typename Format>
void DecodeAddChunk(const unsigned char* in, size_t n, float scale, float* sum) {
  size_t i = 0;
  for (; i + kBucket <= n; i += kBucket, in += Format::Bytes(kBucket)) {
    Format::DecodeAdd(in, kBucket, scale, sum + i);
  }
  if (i < n) Format::DecodeAdd(in, n - i, scale, sum + i);
}

template <typename Format>
int64_t FirstBadBucket(const unsigned char* in, size_t n) {
  for (size_t i = 0; i < n; i += kBucket) {
    const size_t count = n - i < kBucket ? n - i : kBucket;
    if (!Format::Finite(in, count)) return static_cast<int64_t>(i / kBucket);
    in += Format::Bytes(count);
  }
  return -1;
}

template <typename Format>
constexpr CodecKernel KernelOf() {
  return {Format::kId,           Format::kName,          Format::kHelp,         Format::kLossless,
          Format::kCodesWeights, Format::kLargest,       Format::Bytes,         EncodeChunk<Format>,
          DecodeChunk<Format>,   DecodeAddChunk<Format>, FirstBadBucket<Format>};
}

}  // namespace kumo::KUMO_ISA
