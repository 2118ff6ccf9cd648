// Random stream of dropout on the device (models/ops/dropout/stream.h): Philox4x32-10
// (common/base/rng.h) at any position, so that masks need not be kept.
#pragma once

#include <cstdint>

#include "models/backend/cuda/step.h"

namespace kumo::cuda {

class DropoutNumbers {
 public:
  __device__ DropoutNumbers(const StepBlock* step, int layer)
      : key_(Mix(Mix(Mix(step->seed) ^ kPurpose) ^ step->partition)),
        stream_(
            Mix(Mix(step->round) ^ (step->step * kLayersPerStep + static_cast<uint64_t>(layer)))) {}

  // Numbers 4 block .. 4 block + 3 of the stream, uniform in [0, 1).
  __device__ float4 Block(uint64_t block) const {
    uint4 counter =
        make_uint4(static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                   static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32));
    uint2 key = make_uint2(static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32));
    for (int round = 0; round < 10; ++round) {
      const uint32_t high0 = __umulhi(0xD2511F53u, counter.x);
      const uint32_t low0 = 0xD2511F53u * counter.x;
      const uint32_t high1 = __umulhi(0xCD9E8D57u, counter.z);
      const uint32_t low1 = 0xCD9E8D57u * counter.z;
      counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
      key.x += 0x9E3779B9u;
      key.y += 0xBB67AE85u;
    }
    return make_float4(Uniform(counter.x), Uniform(counter.y), Uniform(counter.z),
                       Uniform(counter.w));
  }
  __device__ float At(uint64_t number) const {
    const float4 block = Block(number / 4);
    const float of[4] = {block.x, block.y, block.z, block.w};
    return of[number % 4];
  }

 private:
  static constexpr uint64_t kPurpose = 3;              // RngPurpose::kDropout
  static constexpr uint64_t kLayersPerStep = 1 << 16;  // as on the host

  __device__ static float Uniform(uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-24f;
  }
  __device__ static uint64_t Mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }

  uint64_t key_;
  uint64_t stream_;
};

}  // namespace kumo::cuda
