// CRC-32C (Castagnoli), the checksum of everything that Kumo sends or writes: the one of iSCSI
// (RFC 3720, appendix B.4), of TFRecord and of ext4. Computed by ISA-L, which picks the machine's
// fastest instructions.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kumo {

// The checksum of A followed by `bytes`, where `crc` is the checksum of A; 0 is the checksum of
// nothing. So Crc32c(AB) == ExtendCrc32c(Crc32c(A), B).
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes);

// The checksum of `bytes`: 0xE3069283 of "123456789".
inline uint32_t Crc32c(std::span<const std::byte> bytes) { return ExtendCrc32c(0, bytes); }

// TFRecord's mask: a checksum that is itself stored among checksummed bytes is rotated and moved,
// because the CRC of a string with its own CRC in it tells little.
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

}  // namespace kumo
