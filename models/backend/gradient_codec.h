// Between a device's arenas and packed bytes in the host's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "common/codec/codec.h"

namespace kumo {

class GradientCodec {
 public:
  virtual ~GradientCodec() = default;

  // `to` becomes n numbers from their code, in host memory, which may change as soon as it returns.
  virtual void Decode(const Codec& codec, std::span<const std::byte> code, int64_t n,
                      float* to) = 0;
  // Codec::EncodeUpTo of x, or of x - minus where that is not null. `residual` is null where there
  // is no error feedback.
  struct Encoding {
    const Codec* codec = nullptr;
    const float* x = nullptr;
    const float* minus = nullptr;
    float* residual = nullptr;
    int64_t n = 0;
    float most = std::numeric_limits<float>::max();
    std::span<std::byte> code;  // in host memory, EncodedBytes(n) of it
    int64_t first_bad = -1;     // what EncodeUpTo returns
  };
  // A contribution, or chunks of one: codes and first_bad are there after Wait, until which
  // `encodings` stay where they are. Fastest where codes lie one behind the other in memory of
  // MakeCode.
  virtual void Encode(std::span<Encoding> encodings) = 0;
  // The same of numbers that the next Repeat's work has made when it comes to Mark(mark), and does
  // not change any more: they are coded beside what it queues after that. `done` is called when
  // codes and first_bad are there, by the caller's thread within Repeat, Read or Wait, and never
  // where the device has failed; no call of this object is made in it. Requires that the work marks
  // that, and one call for each mark.
  virtual void EncodeAt(int mark, std::span<Encoding> encodings, std::function<void()> done) = 0;
  // To be called within Repeat's work: EncodeAt(mark, ...) waits for what was queued so far.
  virtual void Mark(int mark) = 0;
  // Host memory that Encode writes into best; at least `bytes` long.
  virtual std::shared_ptr<std::byte> MakeCode(size_t bytes) = 0;
};

}  // namespace kumo
