// Random numbers that need no state but a position: Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
//
// A stream is named by what it is for (seed, purpose, and up to three numbers: a partition, a
// round, a layer ...), so whichever process computes a partition draws the same numbers, on any
// device. Values; copying a stream copies its position. Not shared between threads.
#pragma once

#include <array>
#include <cstdint>

namespace kumo {

// What a stream of random numbers is for. The numbers are part of the job's mathematics: never
// renumber them.
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
};

// One Philox4x32-10 block: four words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Rng {
 public:
  // a, b and c tell streams of one purpose apart; streams of different arguments are independent.
  Rng(uint64_t seed, RngPurpose purpose, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);

  uint32_t NextUint32();
  // The stream's word n, counted from 0, is what NextUint32 gives next.
  void MoveTo(uint64_t n);
  uint64_t NextUint64();
  // Uniform in [0, bound), without bias. Requires bound > 0.
  uint64_t NextBelow(uint64_t bound);
  // Uniform in [0, 1), 24 bits.
  float NextUniform();
  // Uniform in [low, high).
  float NextUniform(float low, float high) { return low + (high - low) * NextUniform(); }
  // Normal with mean 0 and deviation 1 (Box-Muller).
  float NextNormal();

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;  // words of block_ already given out
  bool has_spare_normal_ = false;
  float spare_normal_ = 0.0f;
};

}  // namespace kumo
