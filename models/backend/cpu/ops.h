// The CPU backend's ops, one file each; only cpu_backend.cc makes them. What they share is
// `Engine`: the kernels of one instruction-set level and the threads. It outlives the ops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <glog/logging.h>

#include "common/base/thread_pool.h"
#include "common/job/parameter_layout.h"
#include "models/backend/cpu/kernels.h"
#include "models/backend/cpu/layout.h"
#include "models/backend/device_array.h"
#include "models/backend/op.h"
#include "models/backend/step_recorder.h"

namespace kumo::cpu {

// What the ops' own arrays are told as.
inline constexpr char kWorkspace[] = "layers' own arrays";

struct Engine {
  Isa isa;
  const ConvolutionKernels& convolution;
  const ElementwiseKernels& elementwise;
  const PoolingKernels& pooling;
  const BatchNormalisationKernels& batch_normalisation;
  const GroupNormalisationKernels& group_normalisation;
  const L2NormalisationKernels& l2_normalisation;
  const PositionNormalisationKernels& position_normalisation;
  const AttentionKernels& attention;
  const WinogradKernels& winograd;
  ThreadPool pool;
  DeviceMemory& memory;
  StepParameters step;
  float gradient_factor = 1;  // see ArenaArithmetic::MeasureGradients
  // One array for all ops, which run one after the other: what is in it holds until an op returns.
  // It is as long as the op wants it that asks for most when it is made.
  int64_t scratch_floats = 0;
  DeviceArray<float> scratch;
  Padding padding = Padding::kNone;  // what the ops that were made until now need
  // Floats between two neighbouring positions of a minibatch's activations.
  int64_t Lanes(int batch) const { return LanesOf(padding, batch); }

  void ReserveScratch(int64_t floats) { scratch_floats = std::max(scratch_floats, floats); }
  // Null where there was no memory, which the device says.
  float* Scratch() {
    if (scratch.size() < scratch_floats) {
      scratch = DeviceArray<float>(memory, scratch_floats, kWorkspace);
    }
    return scratch.data();
  }

  int threads() const { return pool.threads() + 1; }
  // body(i) for i in [0, n) on all threads; i's work must not depend on who does it.
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

// [0, n) as the fewest pieces of at most `most`, as even as they can be.
std::vector<Range> EvenPieces(int64_t n, int64_t most);

// The ways to convolve, each an op in a file of its own: convolution.cc, grouped_convolution.cc,
// gathered_convolution.cc, winograd_convolution.cc. Only the first one pools.
enum class ConvolutionWay { kPlain, kGrouped, kGathered, kMinimal };
// The one that a spec asks for; minibatches of few samples may go another way
// (convolution_ways.cc).
ConvolutionWay WayOf(const ConvolutionSpec& spec);
std::unique_ptr<Op> MakePlainConvolution(Engine& engine, const ConvolutionSpec& spec,
                                         int max_batch);
std::unique_ptr<Op> MakeGroupedConvolution(Engine& engine, const ConvolutionSpec& spec,
                                           int max_batch);
std::unique_ptr<Op> MakeGatheredConvolution(Engine& engine, const ConvolutionSpec& spec,
                                            int max_batch);
bool PaysByWinograd(const ConvolutionSpec& spec, int batch);
std::unique_ptr<Op> MakeWinogradConvolution(Engine& engine, const ConvolutionSpec& spec);

// The backend's table: an op of each spec.
std::unique_ptr<Op> MakeOp(Engine& engine, const ConvolutionSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const FullyConnectedSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const PoolingSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const ActivationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const DropoutSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const BatchNormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const GroupNormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const L2NormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const PositionNormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const EmbeddingSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const PositionalEmbeddingSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const AttentionSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const RearrangeSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const AddSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const MultiplySpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const ConcatSpec& spec, int max_batch);
std::unique_ptr<LossOp> MakeLoss(const Engine& engine, const SoftmaxCrossEntropySpec& spec);
std::unique_ptr<LossOp> MakeLoss(const Engine& engine, const DifferenceLossSpec& spec);
// Of what is not above.
template <typename Spec>
Status MakeOp(Engine&, const Spec&, int) {
  return LacksOp("cpu", Spec::kName);
}

}  // namespace kumo::cpu
