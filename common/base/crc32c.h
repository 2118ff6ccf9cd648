// CRC-32C (Castagnoli): the checksum of everything that Kumo sends or writes, as in iSCSI (RFC
// 3720, appendix B.4), TFRecord and ext4. ISA-L computes it with the machine's fastest
// instructions.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kumo {

// Returns the checksum of A followed by `bytes`, given `crc`, the checksum of A; the checksum of
// the empty string is 0. So Crc32c(AB) == ExtendCrc32c(Crc32c(A), B).
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes);

// Returns the checksum of `bytes`; "123456789" has 0xE3069283.
inline uint32_t Crc32c(std::span<const std::byte> bytes) { return ExtendCrc32c(0, bytes); }

// TFRecord's mask for a checksum that is stored among checksummed bytes: the CRC of a string that
// contains its own CRC is a weak check.
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

}  // namespace kumo
