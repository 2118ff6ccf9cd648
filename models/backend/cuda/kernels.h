// Kernels of the CUDA backend itself; ops and losses keep theirs in ops/*/cuda.cu
// and losses/. Each function queues one
// kernel or two and returns whether they could be launched. Arrays are in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <cuda_runtime_api.h>

#include "common/codec/codec.h"
#include "common/optimiser/kernel.h"
#include "models/backend/backend.h"
#include "models/backend/cuda/step.h"
#include "models/layers/ops.h"
#include "models/tensor/tensor.h"

namespace kumo::cuda {

// Launch parameters: the stream of a kernel, and the number of multiprocessors to fill.
struct Launch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
};

// An activation array: float32 numbers are samples x channels x plane, 16-bit ones samples x plane
// x channels.
struct ActivationShape {
  Precision precision = Precision::kFp32;
  int batch = 0;
  int64_t channels = 0;
  int64_t plane = 0;

  __host__ __device__ int64_t size() const { return batch * channels * plane; }
};

// --- step_kernel.cu
cudaError_t StoreStep(const Launch& launch, const StepBlock& step, StepBlock* to);

// --- add_to_kernel.cu. to += factor * from. The arrays need not be aligned to packs.
cudaError_t AddTo(const Launch& launch, float factor, const float* from, int64_t n, float* to);

// --- transpose_kernel.cu. Of `count` matrices: to[k][column][row] = from[k][row][column].
struct Planes {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};
cudaError_t Transpose(const Launch& launch, Precision from_precision, const void* from,
                      const Planes& planes, Precision to_precision, void* to);

// --- pixels_kernel.cu. inputs = scale * (pixels - mean), of images of fewer than 2^32 numbers,
// sample by sample channels x height x width.
struct PixelArrays {
  float scale = 1;
  const float* mean = nullptr;    // of one image; null: none is subtracted
  const float* scales = nullptr;  // of each channel, in place of `scale`; null: that is all theirs
};
cudaError_t LoadPixels(const Launch& launch, const ActivationShape& shape, const uint8_t* pixels,
                       const PixelArrays& formula, void* inputs);

// --- bias_kernel.cu
// to += bias of the channel.
cudaError_t AddBias(const Launch& launch, const ActivationShape& shape, const float* bias,
                    void* to);
// Bytes of scratch memory that sums over channels need.
size_t ChannelScratch(const ActivationShape& shape);
// bias_gradient[c]: the sum of the channel's gradients.
cudaError_t BiasGradient(const Launch& launch, const ActivationShape& shape, const void* gradient,
                         void* scratch, float* bias_gradient);

// --- gradient_norm_kernel.cu. See ArenaArithmetic::MeasureGradients.
// Doubles of scratch memory that n gradients need.
int GradientSums(const Launch& launch, int64_t n);
// Sets step->gradient_factor, and *loss_scale where losses are scaled.
cudaError_t MeasureGradients(const Launch& launch, const float* gradients, int64_t n, bool scales,
                             double* sums, StepBlock* step, LossScale* loss_scale);
cudaError_t ScaleGradients(const Launch& launch, const StepBlock* step, int64_t n,
                           float* gradients);
// x /= their norm + epsilon. sums: one double more than GradientSums.
cudaError_t Normalise(const Launch& launch, float epsilon, int64_t n, double* sums, float* x);

// --- codec_kernel.cu. common/codec/codec.h on the device, the same bits; see there.
// One array to encode: x, or x - minus if `minus` is not null; residual may be null. If a number
// is not finite or above context.most, *first_bad becomes its position, unless it is lower already;
// then `out` and the residual are unspecified.
struct EncodeJob {
  const float* x = nullptr;
  const float* minus = nullptr;
  float* residual = nullptr;
  int64_t n = 0;
  std::byte* out = nullptr;  // aligned to 8 bytes
  unsigned long long* first_bad = nullptr;
  int64_t first_group = 0;  // groups of the jobs before it
  EncodeContext context;
  CodecSettings settings;
};
// For chunks of a codec of tensors (Codec::of_tensors): the tensors of all jobs, in order. A
// number's place is the index of its group among the groups of all jobs, times 4,096, plus its
// position in the group.
struct EncodedTensor {
  int64_t begin = 0;  // place of its first number
  int64_t end = 0;    // behind the place of its last number
};
struct TensorLevels {
  double mean;
  double step;
  float levels[4];
};
struct TensorTable {  // in device memory
  const EncodedTensor* tensors = nullptr;
  int count = 0;  // 0: none of the jobs has tensors
  // Working memory.
  TensorLevels* levels = nullptr;  // by tensor
  // 64 for each group of all jobs.
  uint16_t* positions = nullptr;
  float* values = nullptr;
};
// `jobs` in device memory, all of this codec, or each of a codec of tensors; `groups`: the number
// of groups (Codec::group()) of all jobs.
cudaError_t Encode(const Launch& launch, const Codec& codec, const EncodeJob* jobs, int count,
                   int64_t groups, const TensorTable& tensors = {});
// `in` is aligned to 8 bytes. Not for codecs of tensors.
cudaError_t Decode(const Launch& launch, const Codec& codec, const std::byte* in, int64_t n,
                   float* out);
// topk2bit_kernel.cu: likewise.
cudaError_t EncodeTopk2bit(const Launch& launch, const EncodeJob* jobs, int count, int64_t groups,
                           const TensorTable& tensors);
cudaError_t DecodeTopk2bit(const Launch& launch, const std::byte* in, int64_t n, float* out);

// --- optimiser_kernel.cu. One step of common/optimiser/, the same bits; `numbers` in device
// memory, since they change from step to step, and so is the factor of the gradients; if that is 0,
// nothing moves. `factors` of learning rate and weight decay stay the same. slots as
// Optimiser::Step has them.
using OptimiserStep = cudaError_t (*)(const Launch& launch, const StepNumbers* numbers,
                                      const float* factor, const StepFactors& factors,
                                      const float* gradient, int64_t n, float* weights,
                                      float* const* slots);
OptimiserStep FindOptimiserStep(OptimiserType type);
// Optimiser::DirectionOfMatrix and StepMatrix likewise.
cudaError_t DirectionOfMatrix(const Launch& launch, const StepNumbers* numbers, const float* factor,
                              const float* gradient, int64_t n, float* mean, float* to);
cudaError_t StepMatrix(const Launch& launch, const StepNumbers* numbers, const float* factor,
                       const StepFactors& factors, float stretch, const float* x, int64_t n,
                       float* weights);
// See MatrixArithmetic::Combine.
cudaError_t Combine(const Launch& launch, float p, const float* x, float q, const float* y,
                    int64_t n, float* to);

}  // namespace kumo::cuda
