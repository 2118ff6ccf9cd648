// Codec topk: of each group of 4,096 numbers the k with the largest magnitude, their values through
// another codec. Numbers that are not sent stay in the residual.
//
// Stateless and thread-safe, as each codec (codec.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/codec/codec.h"
#include "common/codec/topk_kernel.h"

namespace kumo {

class TopkCodec final : public Codec {
 public:
  static constexpr std::string_view kHelp =
      "the largest of each 4,096 numbers (sync.topk_percent), by another codec (sync.topk_values)";

  // `values` codes what is sent: settings.values of the kernel's level, with a group of kBucket.
  // Both are borrowed for ever.
  TopkCodec(const TopkKernel& kernel, const Codec& values, const CodecSettings& settings)
      : kernel_(kernel), values_(values), settings_(settings) {}

  CodecId id() const override { return CodecId::kTopk; }
  std::string_view name() const override { return "topk"; }
  bool lossless() const override { return false; }
  bool codes_weights() const override { return false; }
  const CodecTraits& traits() const override { return kTraits; }
  const CodecSettings& settings() const override { return settings_; }
  size_t group() const override { return kTopkGroup; }
  size_t granule() const override { return kTopkGroup; }
  bool plain() const override { return false; }
  float largest() const override { return values_.largest(); }
  size_t EncodedBytes(size_t n) const override;
  int64_t EncodeIn(const EncodeContext& context, std::span<const float> x,
                   std::span<float> residual, std::span<std::byte> out) const override;
  Status Check(std::span<const std::byte> encoded, size_t n) const override;
  void DecodeAdd(std::span<const std::byte> encoded, size_t n, size_t first, float scale,
                 std::span<float> sum) const override;
  void Decode(std::span<const std::byte> encoded, size_t n, size_t first,
              std::span<float> out) const override;

 private:
  static constexpr CodecTraits kTraits = {.needs_feedback = true, .sparse = true, .selects = true};

  size_t GroupBytes(size_t count) const;
  // Calls use(index, value) for the numbers first .. first + count - 1 that were sent; the index
  // counts from `first`.
  template <typename Use>
  void ForEachSent(std::span<const std::byte> encoded, size_t n, size_t first, size_t count,
                   Use use) const;

  const TopkKernel& kernel_;
  const Codec& values_;
  const CodecSettings settings_;
};

}  // namespace kumo
