#include "common/base/rng.h"

#include <cmath>
#include <numbers>

#include <glog/logging.h>

namespace kumo {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit affects every output bit.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

Rng::Rng(uint64_t seed, RngPurpose purpose, uint64_t a, uint64_t b, uint64_t c) {
  // Seed, purpose and a select the key; b and c are the upper half of the counter.
  const uint64_t key = Mix(Mix(Mix(seed) ^ static_cast<uint64_t>(purpose)) ^ a);
  const uint64_t stream = Mix(Mix(b) ^ c);
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  counter_ = {0, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
}

uint32_t Rng::NextUint32() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[used_++];
}

void Rng::MoveTo(uint64_t n) {
  counter_[0] = static_cast<uint32_t>(n / 4);
  counter_[1] = static_cast<uint32_t>(n / 4 >> 32);
  used_ = 4;
  has_spare_normal_ = false;
  for (uint64_t i = 0; i < n % 4; ++i) NextUint32();
}

uint64_t Rng::NextUint64() {
  const uint64_t low = NextUint32();
  return low | (uint64_t{NextUint32()} << 32);
}

uint64_t Rng::NextBelow(uint64_t bound) {
  CHECK_GT(bound, 0u);
  // Rejection: values below the threshold would make low residues more likely.
  const uint64_t threshold = (0 - bound) % bound;
  while (true) {
    const uint64_t value = NextUint64();
    if (value >= threshold) return value % bound;
  }
}

float Rng::NextUniform() { return static_cast<float>(NextUint32() >> 8) * 0x1p-24f; }

float Rng::NextNormal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  // 1 - u lies in (0, 1], so the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(NextUniform())));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(NextUniform());
  spare_normal_ = static_cast<float>(radius * std::sin(angle));
  has_spare_normal_ = true;
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace kumo
