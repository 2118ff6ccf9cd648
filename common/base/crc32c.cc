#include "common/base/crc32c.h"

#include <algorithm>

#include <isa-l/crc.h>

namespace kumo {

uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes) {
  // ISA-L updates the bare register, so both inversions of the standard are done here. It takes
  // lengths as int, and its argument, which it does not write, without const.
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kMostAtOnce);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(n), state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

}  // namespace kumo
