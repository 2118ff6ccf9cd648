// Codec of gradients: between a device's arenas and packed bytes in the host's memory.
//
// A part of Backend. Not thread-safe: one caller at a time, or two if codes_beside_steps().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "common/codec/codec.h"

namespace kumo {

class GradientCodec {
 public:
  virtual ~GradientCodec() = default;

  // Decodes n numbers to `to`. `code` is in host memory, and may change after the call.
  virtual void Decode(const Codec& codec, std::span<const std::byte> code, int64_t n,
                      float* to) = 0;
  // Likewise, but to += factor * number, each product and sum rounded to float32.
  virtual void DecodeAdd(const Codec& codec, std::span<const std::byte> code, float factor,
                         int64_t n, float* to) = 0;
  // Codec::EncodeIn of x, or of x - minus if `minus` is not null. `residual` is null without
  // error feedback. Chunks of a codec of tensors (Codec::of_tensors) are encoded as by
  // ContributionEncoder, those of one tensor in one call.
  struct Encoding {
    const Codec* codec = nullptr;
    const float* x = nullptr;
    const float* minus = nullptr;
    float* residual = nullptr;
    int64_t n = 0;
    EncodeContext context;
    std::span<std::byte> code;  // in host memory, EncodedBytes(n) of it
    int64_t first_bad = -1;     // the result of EncodeIn
  };
  // Encodes a contribution, or chunks of one. Codes and first_bad are there after Wait; until then
  // `encodings` must not move. Fastest if codes lie one behind the other in memory of MakeCode.
  virtual void Encode(std::span<Encoding> encodings) = 0;
  // Encodes numbers that the next Repeat's work has computed at Mark(mark) and does not change
  // afterwards; they are coded beside the work behind the mark. `done` is called when codes and
  // first_bad are there, by the caller's thread within Repeat, Read or Wait, and never if the
  // device has failed; `done` must not call this object. Requires that the work calls Mark(mark),
  // and one call of EncodeAt for each mark.
  virtual void EncodeAt(int mark, std::span<Encoding> encodings, std::function<void()> done) = 0;
  // To be called within Repeat's work: EncodeAt(mark, ...) waits for the work queued so far.
  virtual void Mark(int mark) = 0;
  // Whether one other thread may call Encode, Wait, Decode and DecodeAdd, and work on arrays of its
  // own (Zero, AddTo), while this one queues steps without marks.
  virtual bool codes_beside_steps() const = 0;
  // Host memory that Encode writes into best; at least `bytes` long.
  virtual std::shared_ptr<std::byte> MakeCode(size_t bytes) = 0;
};

}  // namespace kumo
