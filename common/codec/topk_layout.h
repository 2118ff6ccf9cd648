// Layout of codec topk's groups, for the host and for devices.
//
// As formulas.h: the includer has named the namespace (KUMO_ISA), and says what stands in front of
// a function (KUMO_FORMULA).
#pragma once

#include <cstddef>

#include "common/codec/kernel.h"

namespace kumo::KUMO_ISA {

struct TopkLayout {
  // The number of elements that are sent of a group of `count`.
  KUMO_FORMULA static size_t Kept(const CodecSettings& settings, size_t count) {
    return (count * static_cast<size_t>(settings.kept) + 4095) / 4096;
  }
  KUMO_FORMULA static size_t Aligned(size_t bytes) { return (bytes + 3) / 4 * 4; }
  KUMO_FORMULA static size_t PositionBytes(size_t kept) { return Aligned((3 * kept + 1) / 2); }
};

}  // namespace kumo::KUMO_ISA
