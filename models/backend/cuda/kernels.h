// The CUDA backend's own kernels, for what cuDNN and cuBLAS lack. Each function here queues one
// kernel and returns whether it could be launched; arrays are in device memory. Activations are
// samples x channels x height x width.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "common/codec/codec.h"
#include "common/optimiser/kernel.h"
#include "models/backend/cuda/step.h"
#include "models/tensor.h"

namespace kumo::cuda {

// Where a kernel is queued, and how many multiprocessors there are to fill.
struct Launch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
};

cudaError_t StoreStep(const Launch& launch, const StepBlock& step, StepBlock* to);

// --- elementwise_kernel.cu. `to` may be `from`, and grad_input grad_output.
cudaError_t Relu(const Launch& launch, const float* from, int64_t n, float* to);
cudaError_t Tanh(const Launch& launch, const float* from, int64_t n, float* to);
cudaError_t Sigmoid(const Launch& launch, const float* from, int64_t n, float* to);
// From an activation's value y and the gradient with respect to it.
cudaError_t ReluBackward(const Launch& launch, const float* y, const float* grad_output, int64_t n,
                         float* grad_input);
cudaError_t TanhBackward(const Launch& launch, const float* y, const float* grad_output, int64_t n,
                         float* grad_input);
cudaError_t SigmoidBackward(const Launch& launch, const float* y, const float* grad_output,
                            int64_t n, float* grad_input);

// --- gather_kernel.cu. Minibatches of a data set in device memory, of `size` numbers a sample:
// inputs[k * size + j] = scale * pixels[indices[k] * size + j].
cudaError_t Gather(const Launch& launch, const uint8_t* pixels, const uint8_t* labels, int64_t size,
                   float scale, const int64_t* indices, int batch, float* inputs,
                   int32_t* batch_labels);

// --- dropout_kernel.cu. to[i] = from[i] * (0 or 1 / (1 - ratio)), as number i of the stream of the
// step under way and of the layer says: the same mask for forward and backward, and as on the CPU.
cudaError_t Drop(const Launch& launch, const StepBlock* step, int layer, float ratio,
                 const float* from, int64_t n, float* to);

// --- batch_normalisation_kernel.cu. Of `batch` samples of channels x plane numbers.
struct NormShape {
  int batch = 0;
  int64_t channels = 0;
  int64_t plane = 0;
};
// mean and inverse (1 / deviation), each [channels]; the running ones move by 1 - momentum.
cudaError_t Moments(const Launch& launch, const NormShape& shape, const float* x, float epsilon,
                    float momentum, float* mean, float* inverse, float* running_mean,
                    float* running_variance);
// The same two from the running ones.
cudaError_t RunningMoments(const Launch& launch, int64_t channels, const float* running_mean,
                           const float* running_variance, float epsilon, float* mean,
                           float* inverse);
cudaError_t Normalise(const Launch& launch, const NormShape& shape, const float* x,
                      const float* mean, const float* inverse, const float* scale,
                      const float* shift, float* y);
// Sums over each channel: shift_gradient = sum dy, scale_gradient = sum dy (x - mean) inverse.
cudaError_t NormSums(const Launch& launch, const NormShape& shape, const float* x, const float* dy,
                     const float* mean, const float* inverse, float* scale_gradient,
                     float* shift_gradient);
cudaError_t NormBackward(const Launch& launch, const NormShape& shape, const float* x,
                         const float* dy, const float* mean, const float* inverse,
                         const float* scale, const float* scale_gradient,
                         const float* shift_gradient, float* dx);

// --- softmax_cross_entropy_kernel.cu. losses and hits, each [batch], are scratch; grad_scores may
// be null.
cudaError_t SoftmaxCrossEntropy(const Launch& launch, int batch, int classes, const float* scores,
                                const int32_t* labels, float* losses, int32_t* hits,
                                float* grad_scores);
// Adds the first `batch` of them to the sums, in a fixed order.
cudaError_t AddLosses(const Launch& launch, int batch, const float* losses, const int32_t* hits,
                      StepResult* sums);

// --- codec_kernel.cu. common/codec/codec.h on the device, the same bits; see there. Encodes x, or
// x - minus where that is not null; residual may be null. Where a number is not finite,
// *first_bad becomes its position if that is less than what it held; then `out` and the residual
// are unspecified.
cudaError_t Encode(const Launch& launch, CodecId codec, const float* x, const float* minus,
                   float* residual, int64_t n, std::byte* out, unsigned long long* first_bad);
cudaError_t Decode(const Launch& launch, CodecId codec, const std::byte* in, int64_t n, float* out);

// --- optimiser_kernel.cu. One step of common/optimiser/, the same bits; `numbers` in device
// memory, since they change from step to step. slots as Optimiser::Step has them.
cudaError_t SgdStep(const Launch& launch, const StepNumbers* numbers, const float* gradient,
                    int64_t n, float* weights, float* const* slots);
cudaError_t MomentumStep(const Launch& launch, const StepNumbers* numbers, const float* gradient,
                         int64_t n, float* weights, float* const* slots);
cudaError_t NesterovStep(const Launch& launch, const StepNumbers* numbers, const float* gradient,
                         int64_t n, float* weights, float* const* slots);
cudaError_t AdamStep(const Launch& launch, const StepNumbers* numbers, const float* gradient,
                     int64_t n, float* weights, float* const* slots);
cudaError_t AdamWStep(const Launch& launch, const StepNumbers* numbers, const float* gradient,
                      int64_t n, float* weights, float* const* slots);

}  // namespace kumo::cuda
