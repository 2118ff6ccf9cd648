// The protocol's version; docs/formats.md is the grammar.
#pragma once

#include <cstdint>

namespace kumo {

// Raised when processes of two releases could misunderstand each other.
constexpr uint32_t kProtocolVersion = 5;

// Generations are numbers up to this one. A job comes to a new one with each start and each loss;
// whatever names a later one is damaged.
constexpr uint32_t kLastGeneration = 0x7fffffff;

// So many checkpoints a server names of those that its disk has.
constexpr int kMostHeldCheckpoints = 16;

// So many missing partitions a server names in its report.
constexpr int kMostMissing = 16;

}  // namespace kumo
