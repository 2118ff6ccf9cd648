// Dropout's masks: Philox4x32-10 (common/base/rng.h) at any position of a stream, so that a mask
// need not be kept, and is the CPU's.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

constexpr uint64_t kPurpose = 3;              // RngPurpose::kDropout
constexpr uint64_t kLayersPerStep = 1 << 16;  // as in cpu/dropout.cc

__device__ uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

__device__ uint4 Philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint32_t high0 = __umulhi(0xD2511F53u, counter.x);
    const uint32_t low0 = 0xD2511F53u * counter.x;
    const uint32_t high1 = __umulhi(0xCD9E8D57u, counter.z);
    const uint32_t low1 = 0xCD9E8D57u * counter.z;
    counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

// A thread makes four numbers: one block of the generator. Numbers are drawn in the order of
// samples, channels, plane, wherever they lie.
template <typename T>
__global__ void DropKernel(const StepBlock* step, uint64_t layer, float ratio, float keep,
                           ActivationShape shape, const T* from, T* to) {
  const uint64_t key = Mix(Mix(Mix(step->seed) ^ kPurpose) ^ step->partition);
  const uint64_t stream = Mix(Mix(step->round) ^ (step->step * kLayersPerStep + layer));
  const int64_t size = shape.channels * shape.plane;
  const int64_t n = shape.batch * size;
  for (int64_t b = FirstOfThread(); 4 * b < n; b += ThreadsOfGrid()) {
    const uint4 words =
        Philox(make_uint4(static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32),
                          static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)),
               make_uint2(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)));
    const uint32_t drawn[4] = {words.x, words.y, words.z, words.w};
    for (int i = 0; i < 4 && 4 * b + i < n; ++i) {
      const int64_t drawn_at = 4 * b + i;
      const int64_t of_sample = drawn_at % size;
      const int64_t place = drawn_at - of_sample + PlaceOf<T>(shape, of_sample);
      const float uniform = static_cast<float>(drawn[i] >> 8) * 0x1p-24f;
      Store(uniform < ratio ? 0.0f : ToFloat(from[place]) * keep, to + place);
    }
  }
}

}  // namespace

cudaError_t Drop(const Launch& launch, const StepBlock* step, int layer, float ratio,
                 const ActivationShape& shape, const void* from, void* to) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, DropKernel<T>, BlocksFor(launch, (shape.size() + 3) / 4), step,
                 static_cast<uint64_t>(layer), ratio, 1.0f / (1.0f - ratio), shape,
                 static_cast<const T*>(from), static_cast<T*>(to));
  });
}

}  // namespace kumo::cuda
