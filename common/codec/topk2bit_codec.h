// Codec topk2bit: of each group of 4,096 numbers the 64 with the largest magnitude, each as one of
// 4 levels. Numbers that are not sent stay in the residual, which decays. After SparseLoCo (arXiv
// 2508.15706).
//
// Levels are means of a tensor's numbers. A server has parts of tensors only, and codes pulls with
// levels of each group instead.
//
// Immutable and thread-safe, as each codec (codec.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/codec/tensor_codec.h"
#include "common/codec/topk_kernel.h"

namespace kumo {

class Topk2bitCodec final : public TensorCodec {
 public:
  static constexpr std::string_view kHelp =
      "the 64 largest of each 4,096 numbers, each as one of 4 levels";

  // Borrowed for ever.
  struct Kernels {
    const TopkKernel& select;
    const Topk2bitKernel& quantise;
  };
  // Levels of each group.
  Topk2bitCodec(const Kernels& kernels, const CodecSettings& settings)
      : Topk2bitCodec(kernels, settings, {}, 0) {}

  CodecId id() const override { return CodecId::kTopk2bit; }
  std::string_view name() const override { return "topk2bit"; }
  bool lossless() const override { return false; }
  bool codes_weights() const override { return false; }
  const CodecTraits& traits() const override { return kTraits; }
  const CodecSettings& settings() const override { return settings_; }
  size_t group() const override { return kTopkGroup; }
  size_t granule() const override { return kTopkGroup; }
  bool plain() const override { return false; }
  float largest() const override;
  size_t EncodedBytes(size_t n) const override;
  std::unique_ptr<const Codec> ForTensors(std::vector<TensorPiece> pieces, size_t n) const override;
  const TensorCodec* of_tensors() const override { return pieces_.empty() ? nullptr : this; }
  // With tensors: as if the chunk had all of their numbers.
  int64_t EncodeIn(const EncodeContext& context, std::span<const float> x,
                   std::span<float> residual, std::span<std::byte> out) const override;
  Status Check(std::span<const std::byte> encoded, size_t n) const override;
  void DecodeAdd(std::span<const std::byte> encoded, size_t n, size_t first, float scale,
                 std::span<float> sum) const override;
  void Decode(std::span<const std::byte> encoded, size_t n, size_t first,
              std::span<float> out) const override;

  // Empty: levels of each group.
  std::span<const TensorPiece> pieces() const override { return pieces_; }
  int64_t Select(const EncodeContext& context, std::span<const float> x, const float* minus,
                 std::span<float> residual, std::span<std::byte> out,
                 Selection* selection) const override;
  void Quantise(std::span<const Selection> chunks) const override;

 private:
  static constexpr CodecTraits kTraits = {
      .needs_feedback = true, .sparse = true, .decays_residual = true, .uses_tensors = true};

  Topk2bitCodec(const Kernels& kernels, const CodecSettings& settings,
                std::vector<TensorPiece> pieces, size_t n)
      : kernels_(kernels), settings_(settings), pieces_(std::move(pieces)), n_(n) {}

  // Positions in the bytes of n numbers.
  size_t GroupAt(size_t group) const;
  size_t LevelsAt(size_t piece, size_t n) const;
  // The piece of a number; without tensors, its group.
  size_t PieceOf(size_t number) const;
  // Numbers before the next piece.
  size_t EndOf(size_t piece, size_t n) const;
  int64_t SelectGroup(const EncodeContext& context, const float* x, const float* minus,
                      float* residual, size_t count, std::byte* out, uint32_t* guess,
                      uint16_t* positions, float* values) const;
  int64_t EncodeGroups(const EncodeContext& context, std::span<const float> x,
                       std::span<float> residual, std::span<std::byte> out) const;
  // Calls use(index, value) for the numbers first .. first + count - 1 that were sent; the index
  // counts from `first`. Before, fetch(index) is called, some groups ahead.
  template <typename Fetch, typename Use>
  void ForEachSent(std::span<const std::byte> encoded, size_t n, size_t first, size_t count,
                   Fetch fetch, Use use) const;

  const Kernels kernels_;
  const CodecSettings settings_;
  const std::vector<TensorPiece> pieces_;
  const size_t n_;  // numbers of all pieces
};

}  // namespace kumo
