// Engine of the CPU backend: the instruction-set level, the threads and the memory that all ops of
// one backend share. The engine outlives the ops. One caller at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/base/thread_pool.h"
#include "common/job/parameter_layout.h"
#include "models/backend/cpu/elementwise_kernel.h"
#include "models/backend/cpu/layout.h"
#include "models/backend/device_array.h"
#include "models/backend/op.h"
#include "models/backend/step_recorder.h"

namespace kumo::cpu {

// Name of the ops' own arrays in the memory ledger.
inline constexpr char kWorkspace[] = "layers' own arrays";

struct CpuEngine {
  Isa isa;
  const ElementwiseKernels& elementwise;
  ThreadPool pool;
  DeviceMemory& memory;
  // Threads that ops reserve memory for, the caller among them. A counting backend has fewer.
  int planned_threads;
  StepParameters step = {};
  float gradient_factor = 1;  // see ArenaArithmetic::MeasureGradients
  // One temporary array for all ops, which run one after the other: its content is valid until an
  // op returns. Its length is the largest that an op has reserved.
  int64_t scratch_floats = 0;
  DeviceArray<float> scratch = {};
  Padding padding = Padding::kNone;  // the largest that the ops made so far need
  // Floats between two neighbouring positions of a minibatch's activations.
  int64_t Lanes(int batch) const { return LanesOf(padding, batch); }

  void ReserveScratch(int64_t floats) { scratch_floats = std::max(scratch_floats, floats); }
  // Null if there was no memory; the device has the failure.
  float* Scratch() {
    if (scratch.size() < scratch_floats) {
      scratch = DeviceArray<float>(memory, scratch_floats, kWorkspace);
    }
    return scratch.data();
  }

  int threads() const { return planned_threads; }
  // body(i) for i in [0, n) on all threads; the work of i must not depend on the thread.
  template <typename Body>
  void Parallel(int64_t n, const Body& body) {
    if (pool.threads() == 0) {
      for (int64_t i = 0; i < n; ++i) body(i);
    } else {
      pool.ParallelFor(n, body);
    }
  }
  // body(begin, end) over pieces of [0, n) that are multiples of 16.
  template <typename Body>
  void ParallelPieces(int64_t n, const Body& body) {
    const int64_t piece = (n / threads() + kSampleLanes) / kSampleLanes * kSampleLanes;
    Parallel((n + piece - 1) / piece,
             [&](int64_t i) { body(i * piece, std::min(n, (i + 1) * piece)); });
  }
  // to[r] = the sum of row r of `from`, for rows of n floats.
  void SumRows(const float* from, int64_t rows, int64_t n, float* to) {
    Parallel(rows, [&](int64_t r) { to[r] = elementwise.sum(from + r * n, n); });
  }
};

// An activation's numbers.
inline const float* Floats(const void* array) { return static_cast<const float*>(array); }
inline float* Floats(void* array) { return static_cast<float*>(array); }

// The numbers of a position's samples, without a call for the few of a small minibatch.
inline void CopySamples(const float* from, int64_t n, float* to) {
  constexpr int64_t kAtOnce = 4;
  int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) std::memcpy(to + i, from + i, kAtOnce * sizeof(float));
  for (; i < n; ++i) to[i] = from[i];
}

// A UnaryOp whose activations are float32 in the layout of layout.h.
class FloatOp : public UnaryOp {
 private:
  void ForwardArray(const Pass& pass, const void* input, void* output) final {
    ForwardFloats(pass, Floats(input), Floats(output));
  }
  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) final {
    BackwardFloats(pass, Floats(input), Floats(output), Floats(grad_output), Floats(grad_input));
  }
  virtual void ForwardFloats(const Pass& pass, const float* input, float* output) = 0;
  virtual void BackwardFloats(const Pass& pass, const float* input, const float* output,
                              const float* grad_output, float* grad_input) = 0;
};

}  // namespace kumo::cpu
