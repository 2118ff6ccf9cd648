// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011).
//
// A stream is identified by seed, purpose and up to three numbers (partition, round, layer, ...),
// so any process and any device draws the same numbers for a partition. A value: a copy keeps the
// position. Not shared between threads.
#pragma once

#include <array>
#include <cstdint>

namespace kumo {

// Purpose of a stream. The values are part of the job's mathematics: never renumber them.
enum class RngPurpose : uint32_t {
  kInitialWeights = 1,
  kShuffle = 2,
  kDropout = 3,
  kAugment = 4,
  kSynthetic = 5,
  kSimulation = 6,
  kTest = 7,
  kTextWindow = 8,
  kGeneration = 9,
  kValidationSplit = 10,
  kClassOrder = 11,
  kRounding = 12,
  kOwnModel = 13,
};

// One Philox4x32-10 block: four words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Rng {
 public:
  // a, b and c distinguish streams of one purpose; different arguments give independent streams.
  Rng(uint64_t seed, RngPurpose purpose, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);

  uint32_t NextUint32();
  // Sets the position: NextUint32 returns word n of the stream next, counted from 0.
  void MoveTo(uint64_t n);
  uint64_t NextUint64();
  // Uniform in [0, bound), without bias. Requires bound > 0.
  uint64_t NextBelow(uint64_t bound);
  // Uniform in [0, 1), 24 bits.
  float NextUniform();
  // Uniform in [low, high).
  float NextUniform(float low, float high) { return low + (high - low) * NextUniform(); }
  // Normal with mean 0 and standard deviation 1 (Box-Muller).
  float NextNormal();

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;  // consumed words of block_
  bool has_spare_normal_ = false;
  float spare_normal_ = 0.0f;
};

}  // namespace kumo
