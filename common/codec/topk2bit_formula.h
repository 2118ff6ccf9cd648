// Layout and arithmetic of codec topk2bit, for the host and for devices: both give the same bits.
// Formulas: docs/formulas.md, "Codecs".
//
// As formulas.h: the includer has named the namespace (KUMO_ISA), has RootOf(double), the square
// root, there, and says what stands in front of a function (KUMO_FORMULA).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kumo::KUMO_ISA {

struct Topk2bitFormula {
  static constexpr int kLevels = 4;
  static constexpr size_t kLevelBytes = kLevels * sizeof(float);
  static constexpr size_t kMostKept = 64;  // of a group

  // The number of elements that are sent of a group of `count`.
  KUMO_FORMULA static size_t Kept(size_t count) { return (count + 63) / 64; }
  // Bytes of a group's positions and codes.
  KUMO_FORMULA static size_t GroupBytes(size_t kept) { return (kept + (kept + 3) / 4 + 3) / 4 * 4; }

  // Positions are a sum of unary and binary parts: the low bits of position j in byte j, and a one
  // in the vector of high bits behind j ones and as many zeros as the position has 64s. Requires
  // positions below 64 kept.
  KUMO_FORMULA static uint8_t LowBits(size_t position) {
    return static_cast<uint8_t>(position % 64);
  }
  KUMO_FORMULA static size_t HighBit(size_t j, size_t position) { return position / 64 + j; }
  KUMO_FORMULA static uint8_t MaskOf(size_t high_bit) {
    return static_cast<uint8_t>(0x40u << (high_bit % 2));
  }
  KUMO_FORMULA static bool IsOne(const std::byte* positions, size_t high_bit) {
    return (static_cast<uint8_t>(positions[high_bit / 2]) & MaskOf(high_bit)) != 0;
  }
  // Position of the one at `high_bit`, before which there are j ones.
  KUMO_FORMULA static size_t PositionAt(const std::byte* positions, size_t high_bit, size_t j) {
    return (high_bit - j) * 64 + static_cast<uint8_t>(positions[j]) % 64;
  }

  KUMO_FORMULA static uint32_t CodeAt(const std::byte* codes, size_t j) {
    return static_cast<uint32_t>(codes[j / 4]) >> (j % 4 * 2) & 3u;
  }

  // The distance of two codes, from the sum of (v - mean)^2 of `count` numbers.
  KUMO_FORMULA static double StepOf(double squares, int64_t count) {
    if (count < 2) return 1.0;
    const double step = 6.0 * RootOf(squares / static_cast<double>(count - 1)) / 4.0;
    return step > 0.0 ? step : 1.0;
  }
  // clamp(round((v - mean) / step + 2), 0, 3), to nearest even.
  KUMO_FORMULA static uint32_t CodeOf(float v, double mean, double step) {
    const double place = (static_cast<double>(v) - mean) / step + 2.0;
    return static_cast<uint32_t>(place > 0.5) + static_cast<uint32_t>(place >= 1.5) +
           static_cast<uint32_t>(place > 2.5);
  }
  KUMO_FORMULA static double MeanOf(double sum, int64_t count) {
    return count > 0 ? sum / static_cast<double>(count) : 0.0;
  }
};

}  // namespace kumo::KUMO_ISA
