// Constants of the protocol, which docs/formats.md describes.
#pragma once

#include <cstdint>

namespace kumo {

// Raised when processes of two releases could misunderstand each other.
constexpr uint32_t kProtocolVersion = 5;

// Largest generation. Each start and each loss raises a job's generation by 1; a message or file
// with a larger one is damaged.
constexpr uint32_t kLastGeneration = 0x7fffffff;

// Most checkpoints that a server lists of its disk.
constexpr int kMostHeldCheckpoints = 16;

// Longest picture of an evaluation, in bytes.
constexpr int kMostPictureBytes = 512 << 10;

// Most missing partitions that a server lists in its report.
constexpr int kMostMissing = 16;

}  // namespace kumo
