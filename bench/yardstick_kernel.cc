#include "bench/yardstick_kernel.h"

#include "common/base/lanes.h"
#include "models/backend/cpu/vector.h"

namespace kumo::KUMO_ISA {

// Without software prefetch, which does not make it faster: the processor prefetches two streams
// itself.
static void AddInto(float* a, const float* b, size_t n) {
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) a[i] += b[i];
}

// More sums than needed for two multiply-adds in each of the 5 latency steps.
constexpr int kSums = 12;

static float MultiplyAdd(int64_t rounds, float factor) {
  const Vector by = Broadcast(factor);
  Vector sums[kSums];
#pragma GCC unroll 12
  for (int s = 0; s < kSums; ++s) sums[s] = Broadcast(static_cast<float>(s));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int s = 0; s < kSums; ++s) sums[s] = sums[s] * by + by;
  }
  float sum = 0;
#pragma GCC unroll 12
  for (int s = 0; s < kSums; ++s) sum += SumOfVector(sums[s]);
  return sum;
}

template <int count>
static void CloseChunkOf(const ClosingPass& pass) {
  const ClosingPass a = pass;
  for (size_t i = 0; i < a.n; i += kPartLanes) {
    FloatPart sum = a.weight * LoadPart(a.contributions[0] + i);
    for (int c = 1; c < count; ++c) sum += a.weight * LoadPart(a.contributions[c] + i);
    const FloatPart velocity = a.eta * LoadPart(a.velocity + i) + a.gain * sum;
    StorePart(velocity, a.velocity + i);
    StreamPart(LoadPart(a.start + i) - velocity, a.next + i);
  }
}

static void CloseChunk(const ClosingPass& pass) {
  if (pass.count == 1) return CloseChunkOf<1>(pass);
  if (pass.count == 2) return CloseChunkOf<2>(pass);
  CloseChunkOf<4>(pass);
}

extern const YardstickKernels kYardstick;
constinit const YardstickKernels kYardstick = {AddInto, MultiplyAdd, kSums* kWidth, CloseChunk};

}  // namespace kumo::KUMO_ISA
