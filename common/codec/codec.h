// Codecs: numbers <-> the bytes of a push or a pull. Formulas: docs/formulas.md, "Codecs".
//
// A codec works on one chunk at a time, in buckets of kBucket numbers (topk, topk2bit: groups of
// 4,096) counted from the chunk's start (the last may be shorter), so any bucket can be decoded by
// itself, and a chunk that is cut at a bucket's (a group's) boundary has the same bytes as the two
// parts one after the other. Codecs are stateless and thread-safe; the residual of error feedback
// belongs to the caller. Results do not depend on the instruction set: sums run over 16 fixed lanes
// in a fixed order. Decoding needs no settings (2bit's threshold is in the code), except for
// topk's.
//
// Contributions in topk2bit are coded with statistics of whole tensors. Each of their chunks has a
// codec of its own (ForTensors), and they are encoded together (contribution_encoder.h).
//
// Layout of n encoded numbers, all little-endian, without padding between buckets:
//   fp32   n x float32.
//   fp16   n x IEEE binary16, rounded to nearest even; magnitudes above 65504 become 65504.
//   bf16   n x the upper half of a float32, rounded to nearest even; magnitudes above the largest
//          finite bf16 become that.
//   int8   per bucket of m numbers: float32 scale, m x int8 code; number = code * scale.
//          scale = absmax / 127, at most FLT_MAX / 128, and 0 if absmax < 2^-100; the encoder
//          writes codes -127 .. 127 and rounds u / scale to nearest even.
//   1bit   per bucket 72 bytes, also for a shorter last one: float32 low, float32 high, 16 x uint32
//          words. Number 16 v + l of the bucket is `high` if bit v of word l is 1, else `low`.
//          The encoder sets the bit if u >= 0; low and high are the means of u over the zeros
//          and over the ones, 0 for an empty side. Bits beyond the chunk's end are written as 0 and
//          ignored.
// The other codecs are packed: per bucket of m numbers float32 scale, then codes of 8, 4 or 2 bits
// (packed.cc has their order) in m bytes, at most 512, 256 or 128. number = value * scale.
//   int4   value = code, two's complement; scale = absmax / 7; else as int8.
//   e3m0   the code's highest bit is the sign; its lower bits are e; value = +-2^(e - 1), 0 if e is
//          0. scale = absmax / 64, 0 if absmax < 2^-100.
//   2bit   value = code, two's complement; scale is the threshold; the encoder writes -1, 0 and 1.
//   int8_stochastic, int4_stochastic: as int8 and int4; the encoder adds a random number between
//          -.5 and .5 to u / scale before it rounds.
//   int8_cntk, int4_cntk, 2bit_cntk: as int8, int4 and 2bit; scale = -8 sigma / (2^bits - 1), and
//          the encoder writes codes from -2^(bits - 1) on.
//   topk   per group of m numbers k = ceil(m kept / 4096) positions of 12 bits, ascending, two in 3
//          bytes, the first in the lowest bits; then the k values as a chunk of codec
//          CodecSettings::values. Both are filled up with zeros to a multiple of 4 bytes. All other
//          numbers are -0, which changes no sum.
//   topk2bit  per group of m numbers 4 x float32 level; k = ceil(m / 64) bytes of ascending
//          positions; k codes of 2 bits, the first in the lowest bits of a byte; zeros up to a
//          multiple of 4 bytes. Number p_j = level[code j]; all other numbers are -0. Byte j has
//          the 6 low bits of p_j. The 2 high bits of the bytes are 2 k bits b, the first
//          in the lower one: b is 1 at (p_j >> 6) + j, else 0. With tensors, groups have no levels:
//          the tensors' levels, in the tensors' order, follow the last group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/choice.h"
#include "common/base/isa.h"
#include "common/base/status.h"
#include "common/codec/kernel.h"

namespace kumo {

// The numbers of a chunk that belong to one tensor.
struct TensorPiece {
  int tensor = 0;
  size_t begin = 0;  // in the chunk; the piece ends where the next one begins
};

class TensorCodec;

class Codec {
 public:
  static constexpr size_t kBucket = 512;

  virtual ~Codec() = default;

  virtual CodecId id() const = 0;
  virtual std::string_view name() const = 0;  // as in experiment files: "1bit"
  // Whether decode(encode(x)) == x for every finite float32 x: then there is no residual.
  virtual bool lossless() const = 0;
  // Whether weights themselves may be pulled in this codec: it rounds each number by itself, and
  // finely enough. Others code how weights have moved.
  virtual bool codes_weights() const = 0;
  virtual const CodecTraits& traits() const = 0;
  virtual const CodecSettings& settings() const = 0;
  // Numbers that are encoded together, counted from the chunk's start; a multiple of kBucket.
  virtual size_t group() const { return kBucket; }
  // The magnitude at which numbers saturate; float32's largest if they do not.
  virtual float largest() const = 0;
  // Exact length in bytes of n encoded numbers.
  virtual size_t EncodedBytes(size_t n) const = 0;
  // Ranges to decode begin at multiples of it: a power of two, up to the group, and short if each
  // number is encoded by itself.
  virtual size_t granule() const = 0;
  // Whether the encoded bytes are the numbers themselves, as float32.
  virtual bool plain() const = 0;

  // The same codec for contributions to a chunk of n numbers, which are these pieces in ascending
  // order, the first at 0; null if tensors mean nothing to this codec.
  virtual std::unique_ptr<const Codec> ForTensors(std::vector<TensorPiece> /*pieces*/,
                                                  size_t /*n*/) const {
    return nullptr;
  }
  // This codec, if it was made by ForTensors: all chunks of a tensor are encoded together. Else
  // null.
  virtual const TensorCodec* of_tensors() const { return nullptr; }

  // u = x + residual (times CodecSettings::residual_factor, if decays_residual); out <- encode(u);
  // residual <- u - decode(out). An empty residual means no error feedback (u = x). Requires
  // out.size() == EncodedBytes(x.size()), a residual that is empty or as long as x, and three
  // arrays that do not overlap. Returns the position of the first number of u that is not finite
  // or, in magnitude, above context.most; or -1. If it is not -1, out and residual are unspecified
  // and must not be used.
  [[nodiscard]] virtual int64_t EncodeIn(const EncodeContext& context, std::span<const float> x,
                                         std::span<float> residual,
                                         std::span<std::byte> out) const = 0;
  // As EncodeIn, for numbers of any finite magnitude.
  [[nodiscard]] int64_t Encode(std::span<const float> x, std::span<float> residual,
                               std::span<std::byte> out) const;
  // The largest magnitude of u that saturation encodes without loss: the excess is kept in the
  // residual and fits into the next code. Without a residual it is largest().
  float MostWithoutLoss(bool has_residual) const;
  // A number beyond that limit in words: "infinite or not a number"; for fp16 "infinite, not a
  // number or too large for fp16, which ends at 65504".
  std::string DescribeMisfit() const;

  // Whether bytes from elsewhere are n encoded numbers, all finite. InvalidArgument names the
  // error: the length, or the bucket that decodes to a number that is not finite. Reads only the
  // scales if the codec has scales. The receiver of a contribution calls this once: DecodeAdd does
  // not check.
  virtual Status Check(std::span<const std::byte> encoded, size_t n) const = 0;

  // sum[i] += scale * decoded[first + i] for i < sum.size(), of a chunk of n numbers, each product
  // and sum rounded to float32. `encoded` may have any alignment and any content (bytes that
  // Check refuses give meaningless numbers), but must be EncodedBytes(n) long; `first` must be a
  // multiple of granule().
  virtual void DecodeAdd(std::span<const std::byte> encoded, size_t n, size_t first, float scale,
                         std::span<float> sum) const = 0;

  // out[i] = decoded[first + i]; the same requirements as DecodeAdd.
  virtual void Decode(std::span<const std::byte> encoded, size_t n, size_t first,
                      std::span<float> out) const = 0;
};

// Every codec, in the order of their ids.
std::span<const Codec* const> AllCodecs();
// The codecs compiled for one level, for tests and benchmarks that compare levels. Requires
// isa <= DetectIsa().
std::span<const Codec* const> AllCodecs(Isa isa);

// The words of sync.push_codec, from the list of codecs.
std::span<const Choice<CodecId>> ChoicesOf(CodecId);

// Borrowed for ever.
const Codec& CodecOf(CodecId id);
// The codec with settings other than the defaults. Thread-safe.
const Codec& CodecOf(CodecId id, const CodecSettings& settings);
// The codec of a number from the wire or a file. NotFound names the existing codecs.
Result<const Codec*> FindCodec(uint32_t id);

}  // namespace kumo
