// For the codecs' kernel sources: the loops over buckets that all formats share.
//
// A format is a struct of static functions over one bucket of `count` numbers (kBucket, or fewer at
// a chunk's end):
//   kId, kName, kHelp, kLossless, kCodesWeights, kLargest, Bytes(count)
//   kGranule, kPlain, optional: Codec::granule(), by default the bucket; Codec::plain(), by default
//       false
//   Encode(u, count, absmax_bits, residual, out): u is finite; residual <- u - decode(out) unless
//       it is null; absmax_bits are the bits of the largest |u|
//   Decode(in, count, out), DecodeAdd(in, count, scale, sum)
//   Finite(in, count): every decoded number is
// A format with kTakesFacts encodes by more than the largest |u|:
//   Encode(u, facts, residual, out), with BucketFacts of formulas.h
// Encoding reads x and the residual from memory once: u goes through a buffer of 2 KiB, which stays
// in the first cache; looking for numbers that are not finite rides along with the maximum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/lanes.h"
#include "common/base/vector_loop.h"
#include "common/codec/kernel.h"

namespace kumo::KUMO_ISA {

KUMO_ALWAYS_INLINE float RootOf(float x) { return __builtin_sqrtf(x); }

}  // namespace kumo::KUMO_ISA

#define KUMO_FORMULA KUMO_ALWAYS_INLINE
#include "common/codec/formulas.h"

namespace kumo::KUMO_ISA {

constexpr size_t kBucket = kCodecBucket;
constexpr float kLargestFloat = __FLT_MAX__;

// The largest magnitude of floats by their bits: lane by lane over whole vectors, and over the
// numbers behind them.
struct AbsMax {
  IntLanes lanes;
  uint32_t rest = 0;

  KUMO_ALWAYS_INLINE void Add(int p, FloatPart x) {
    const IntPart magnitude = BitsOf(x) & static_cast<int32_t>(kMagnitudeBits);
    lanes.part[p] = magnitude > lanes.part[p] ? magnitude : lanes.part[p];
  }
  KUMO_ALWAYS_INLINE void Add(float x) {
    const uint32_t magnitude = BitsOf(x) & kMagnitudeBits;
    rest = magnitude > rest ? magnitude : rest;
  }
  KUMO_ALWAYS_INLINE uint32_t Bits() const {
    uint32_t all[kLanes];
    __builtin_memcpy(all, lanes.part, sizeof(all));
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) all[l] = all[l] > all[l + width] ? all[l] : all[l + width];
    }
    return all[0] > rest ? all[0] : rest;
  }
};

KUMO_ALWAYS_INLINE uint32_t AbsMaxBits(const float* x, size_t count) {
  AbsMax top;
  ForEachBlock(
      count,
      [&top, x](size_t begin, size_t end) KUMO_INLINE_LAMBDA {
        size_t i = begin;
        for (; i + kLanes <= end; i += kLanes) {
          for (int p = 0; p < kParts; ++p) top.Add(p, LoadPart(x + i + p * kPartLanes));
        }
        for (; i < end; ++i) top.Add(x[i]);
      },
      x);
  return top.Bits();
}

// u = x + residual and the bits of the largest |u|.
KUMO_ALWAYS_INLINE uint32_t AddResidual(const float* x, const float* residual, size_t count,
                                        float* u) {
  AbsMax top;
  ForEachBlock(
      count,
      [&top, x, residual, u](size_t begin, size_t end) KUMO_INLINE_LAMBDA {
        size_t i = begin;
        for (; i + kLanes <= end; i += kLanes) {
          for (int p = 0; p < kParts; ++p) {
            const size_t at = i + p * kPartLanes;
            const FloatPart sum = LoadPart(x + at) + LoadPart(residual + at);
            StorePart(sum, u + at);
            top.Add(p, sum);
          }
        }
        for (; i < end; ++i) {
          u[i] = x[i] + residual[i];
          top.Add(u[i]);
        }
      },
      x, residual);
  return top.Bits();
}

// Infinity and NaN are above any number by their bits.
inline int64_t FirstAbove(uint32_t most_bits, const float* u, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if ((BitsOf(u[i]) & kMagnitudeBits) > most_bits) return static_cast<int64_t>(i);
  }
  return -1;
}

template <typename Format>
concept TakesFacts = requires {
  Format::kTakesFacts;
};

// Inputs of a chunk's encoding beside the numbers.
struct ChunkContext {
  const CodecSettings& settings;
  const EncodeContext& context;
};

// Encodes the bucket that begins at number `begin` of its chunk; returns as Codec::EncodeIn does.
// With a constant count (a full bucket) the loops inside have constant lengths.
template <typename Format>
KUMO_ALWAYS_INLINE int64_t EncodeBucket(const ChunkContext& chunk, size_t begin, const float* x,
                                        float* residual, size_t count, unsigned char* out) {
  alignas(64) float buffer[kBucket];
  const float* u = x;
  uint32_t top;
  if (residual != nullptr) {
    top = AddResidual(x, residual, count, buffer);
    u = buffer;
  } else {
    top = AbsMaxBits(x, count);
  }
  const uint32_t most_bits = BitsOf(chunk.context.most);
  if (top > most_bits) {
    const int64_t bad = FirstAbove(most_bits, u, count);
    return static_cast<int64_t>(begin) + bad;
  }
  if constexpr (TakesFacts<Format>) {
    BucketFacts facts = BucketFacts::Of(chunk.settings, chunk.context, begin);
    facts.absmax_bits = top;
    facts.count = static_cast<int>(count);
    Format::Encode(u, facts, residual, out);
  } else {
    Format::Encode(u, count, top, residual, out);
  }
  return -1;
}

template <typename Format>
int64_t EncodeChunk(const CodecSettings& settings, const EncodeContext& context, const float* x,
                    float* residual, size_t n, unsigned char* out) {
  const ChunkContext chunk = {settings, context};
  const size_t rest = n % kBucket;
  const size_t full = n - rest;
  for (size_t i = 0; i < full; i += kBucket, out += Format::Bytes(kBucket)) {
    int64_t bad;
    if (residual != nullptr) {
      bad = EncodeBucket<Format>(chunk, i, x + i, residual + i, kBucket, out);
    } else {
      bad = EncodeBucket<Format>(chunk, i, x + i, nullptr, kBucket, out);
    }
    if (bad >= 0) return bad;
  }
  if (rest == 0) return -1;
  return EncodeBucket<Format>(chunk, full, x + full,
                              residual == nullptr ? nullptr : residual + full, rest, out);
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
constexpr size_t GranuleOf() {
  if constexpr (requires { Format::kGranule; }) return Format::kGranule;
  return kBucket;
}

template <typename Format>
constexpr bool IsPlain() {
  if constexpr (requires { Format::kPlain; }) return Format::kPlain;
  return false;
}

template <typename Format>
constexpr CodecKernel KernelOf(const CodecTraits& traits = {}) {
  return {Format::kId,
          Format::kName,
          Format::kHelp,
          Format::kLossless,
          Format::kCodesWeights,
          Format::kLargest,
          GranuleOf<Format>(),
          IsPlain<Format>(),
          Format::Bytes,
          EncodeChunk<Format>,
          DecodeChunk<Format>,
          DecodeAddChunk<Format>,
          FirstBadBucket<Format>,
          traits};
}

}  // namespace kumo::KUMO_ISA
