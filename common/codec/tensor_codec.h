// Codec of a chunk that sends some of its numbers, coded by statistics of the whole tensors that
// they belong to (Codec::of_tensors). Encoding has two halves, the second one for all chunks of the
// tensors together: contribution_encoder.h.
//
// Stateless and thread-safe, as each codec (codec.h). A Selection belongs to its caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/codec.h"

namespace kumo {

class TensorCodec : public Codec {
 public:
  // The tensors of the chunk.
  virtual std::span<const TensorPiece> pieces() const = 0;

  // Chunk on its way to its bytes.
  struct Selection {
    const TensorCodec* codec = nullptr;
    std::span<float> residual;
    std::span<std::byte> out;
    // Selected numbers, group by group.
    std::vector<uint16_t> positions;  // in their group
    std::vector<float> values;
  };
  // First half of EncodeIn, of x - minus unless `minus` is null: residual <- u, and the positions
  // in `out`. Sets *selection, which borrows both arrays. Requires a residual. Returns as EncodeIn.
  [[nodiscard]] virtual int64_t Select(const EncodeContext& context, std::span<const float> x,
                                       const float* minus, std::span<float> residual,
                                       std::span<std::byte> out, Selection* selection) const = 0;
  // Second half, for all chunks of some tensors in the order of the flat vector, whose codecs were
  // made by ForTensors of one codec.
  virtual void Quantise(std::span<const Selection> chunks) const = 0;
};

}  // namespace kumo
