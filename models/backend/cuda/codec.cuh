// Parts of the codecs' kernels: the formulas that host and device share, the job of a group, and
// the selection of the largest numbers of a group.
#pragma once

#include "models/backend/cuda/grid.cuh"

#define KUMO_ISA on_device
#define KUMO_FORMULA __device__ inline

namespace kumo::KUMO_ISA {

KUMO_FORMULA uint32_t BitsOf(float x) { return __float_as_uint(x); }
KUMO_FORMULA float FloatOf(uint32_t bits) { return __uint_as_float(bits); }
KUMO_FORMULA float RootOf(float x) { return sqrtf(x); }
KUMO_FORMULA double RootOf(double x) { return sqrt(x); }

}  // namespace kumo::KUMO_ISA

#include "common/codec/formulas.h"
#include "common/codec/topk2bit_formula.h"
#include "common/codec/topk_layout.h"

namespace kumo::cuda {

// Job that contains `group`.
__device__ inline const EncodeJob& JobOf(const EncodeJob* jobs, int count, int64_t group) {
  int low = 0;
  for (int high = count; high - low > 1;) {
    const int middle = (low + high) / 2;
    (jobs[middle].first_group <= group ? low : high) = middle;
  }
  return jobs[low];
}

// --- A block of threads for each group of 4,096 numbers, each thread with a run of them.

constexpr int kTopkGroup = 4096;
constexpr int kRun = kTopkGroup / kThreads;

// The sum over the threads before this one; *all: the sum over all threads. Works in `sums`.
__device__ inline int SumBefore(int value, int* sums, int* all) {
  const int me = static_cast<int>(threadIdx.x);
  __syncthreads();
  sums[me] = value;
  __syncthreads();
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const int more = me >= distance ? sums[me - distance] : 0;
    __syncthreads();
    sums[me] += more;
    __syncthreads();
  }
  *all = sums[kThreads - 1];
  return sums[me] - value;
}

__device__ inline uint32_t Magnitude(float x) {
  return on_device::BitsOf(x) & on_device::kMagnitudeBits;
}

// A thread's run of a group.
struct GroupOfThread {
  int first;  // of the run, in the group
  float u[kRun];
  bool sent[kRun];
  int first_sent;  // of the run, among all that are sent
};

// Selects the `kept` largest numbers of a group: u = x + factor * residual. Writes positions and
// values of what is sent, ascending, which all threads see only after a barrier. Works in `sums`.
__device__ inline GroupOfThread SelectGroup(const EncodeJob& job, float factor, int64_t begin,
                                            int numbers, int kept, int* sums, uint16_t* positions,
                                            float* values) {
  GroupOfThread mine;
  mine.first = static_cast<int>(threadIdx.x) * kRun;
  const uint32_t most = on_device::BitsOf(job.context.most);
  for (int r = 0; r < kRun; ++r) {
    mine.u[r] = 0.0f;
    if (mine.first + r >= numbers) continue;
    const int64_t i = begin + mine.first + r;
    mine.u[r] = job.x[i];
    if (job.minus != nullptr) mine.u[r] -= job.minus[i];
    if (job.residual != nullptr) mine.u[r] += factor * job.residual[i];
    if (Magnitude(mine.u[r]) > most) {
      atomicMin(job.first_bad, static_cast<unsigned long long>(i));
      mine.u[r] = 0.0f;  // what is encoded is not used
    }
  }
  // The largest magnitude that at least `kept` numbers reach.
  uint32_t low = 0;
  for (int bit = 30; bit >= 0; --bit) {
    const uint32_t tried = low | 1u << bit;
    int reached = 0;
    for (int r = 0; r < kRun; ++r) {
      reached += mine.first + r < numbers && Magnitude(mine.u[r]) >= tried ? 1 : 0;
    }
    int all = 0;
    SumBefore(reached, sums, &all);
    if (all >= kept) low = tried;
  }
  // All above it, and of those equal to it the first.
  int above = 0;
  int equal = 0;
  for (int r = 0; r < kRun; ++r) {
    if (mine.first + r >= numbers) continue;
    above += Magnitude(mine.u[r]) > low ? 1 : 0;
    equal += Magnitude(mine.u[r]) == low ? 1 : 0;
  }
  int all_above = 0;
  int all_equal = 0;
  SumBefore(above, sums, &all_above);
  int equal_before = SumBefore(equal, sums, &all_equal);
  int selected = 0;
  for (int r = 0; r < kRun; ++r) {
    const bool exists = mine.first + r < numbers;
    mine.sent[r] = exists && Magnitude(mine.u[r]) > low;
    if (exists && Magnitude(mine.u[r]) == low) mine.sent[r] = equal_before++ < kept - all_above;
    selected += mine.sent[r] ? 1 : 0;
  }
  int all = 0;
  mine.first_sent = SumBefore(selected, sums, &all);
  int to = mine.first_sent;
  for (int r = 0; r < kRun; ++r) {
    if (!mine.sent[r]) continue;
    positions[to] = static_cast<uint16_t>(mine.first + r);
    values[to++] = mine.u[r];
  }
  return mine;
}

}  // namespace kumo::cuda
