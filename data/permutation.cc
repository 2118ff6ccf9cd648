#include "data/permutation.h"

#include <bit>

#include <glog/logging.h>

namespace kumo {
namespace {

// The mixing steps of MurmurHash3's 64-bit finaliser (Appleby): every bit of value and key affects
// every bit of the result. The upper bits of the products are the best mixed; the last shift moves
// them to where the masks cut.
uint64_t Hash(uint64_t value, uint64_t key) {
  value ^= key;
  value ^= value >> 33;
  value *= 0xFF51AFD7ED558CCDull;
  value ^= value >> 33;
  value *= 0xC4CEB9FE1A85EC53ull;
  return value ^ (value >> 33);
}

}  // namespace

EpochPermutation::EpochPermutation(int64_t samples, uint64_t seed, int64_t epoch)
    : EpochPermutation(samples, Rng(seed, RngPurpose::kShuffle, static_cast<uint64_t>(epoch))) {}

EpochPermutation::EpochPermutation(int64_t samples, Rng keys) : samples_(samples) {
  CHECK_GE(samples, 1);
  const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(samples - 1)));
  low_bits_ = (bits + 1) / 2;
  low_mask_ = (uint64_t{1} << low_bits_) - 1;
  high_mask_ = (uint64_t{1} << (bits - low_bits_)) - 1;
  for (uint64_t& key : keys_) key = keys.NextUint64();
}

uint64_t EpochPermutation::Permute(uint64_t value) const {
  uint64_t low = value & low_mask_;
  uint64_t high = value >> low_bits_;
  for (int round = 0; round < kHalfRounds; round += 2) {
    high ^= Hash(low, keys_[round]) & high_mask_;
    low ^= Hash(high, keys_[round + 1]) & low_mask_;
  }
  return (high << low_bits_) | low;
}

int64_t EpochPermutation::At(int64_t position) const {
  DCHECK(position >= 0 && position < samples_) << position;
  uint64_t value = static_cast<uint64_t>(position);
  do {
    value = Permute(value);
  } while (value >= static_cast<uint64_t>(samples_));
  return static_cast<int64_t>(value);
}

}  // namespace kumo
