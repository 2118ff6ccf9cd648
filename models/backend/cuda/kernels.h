// The CUDA backend's own kernels, for what cuDNN and cuBLAS lack. Each function here queues one
// kernel or two and returns whether they could be launched; arrays are in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <cuda_runtime_api.h>

#include "common/codec/codec.h"
#include "common/optimiser/kernel.h"
#include "models/backend/backend.h"
#include "models/backend/cuda/step.h"
#include "models/ops/ops.h"
#include "models/tensor.h"

namespace kumo::cuda {

// Where a kernel is queued, and how many multiprocessors there are to fill.
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

// --- elementwise_kernel.cu. `to` may be `from`, and grad_input grad_output.
// Which function, and the number that goes with it.
struct ActivationKind {
  Activation activation = Activation::kRelu;
  float slope = 0;  // see ActivationSpec
};
cudaError_t ActivationForward(const Launch& launch, Precision precision, const ActivationKind& kind,
                              const void* from, int64_t n, void* to);
// From the activation's value, or what it was given (DerivesFromInput), and the gradient with
// respect to the value.
cudaError_t ActivationBackward(const Launch& launch, Precision precision,
                               const ActivationKind& kind, const void* from,
                               const void* grad_output, int64_t n, void* grad_input);
// to = a + b and a b, number by number; `to` may be either.
cudaError_t Add(const Launch& launch, Precision precision, const void* a, const void* b, int64_t n,
                void* to);
cudaError_t Multiply(const Launch& launch, Precision precision, const void* a, const void* b,
                     int64_t n, void* to);
// to += from. Neither need be aligned.
cudaError_t AddTo(const Launch& launch, const float* from, int64_t n, float* to);
// A block of `rows` x `width` numbers, whose rows begin that many numbers apart.
cudaError_t CopyBlock(const Launch& launch, Precision precision, const void* from,
                      int64_t from_pitch, int64_t rows, int64_t width, void* to, int64_t to_pitch);

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

// --- dropout_kernel.cu. to[i] = from[i] * (0 or 1 / (1 - ratio)), as number i of the stream of the
// step under way and of the layer says: the same mask for forward and backward, and as on the CPU.
cudaError_t Drop(const Launch& launch, const StepBlock* step, int layer, float ratio,
                 const ActivationShape& shape, const void* from, void* to);

// --- bias_kernel.cu
// to += bias of the channel.
cudaError_t AddBias(const Launch& launch, const ActivationShape& shape, const float* bias,
                    void* to);
// Bytes of scratch memory that sums over channels need.
size_t ChannelScratch(const ActivationShape& shape);
// bias_gradient[c]: the sum of the channel's gradients.
cudaError_t BiasGradient(const Launch& launch, const ActivationShape& shape, const void* gradient,
                         void* scratch, float* bias_gradient);

// --- batch_normalisation_kernel.cu. `scratch` as ChannelScratch says.
// The numbers of each channel, arrays of [channels].
struct NormNumbers {
  bool relu = false;  // y is max(0, the normalised number)
  float epsilon = 0;
  float momentum = 0;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* mean = nullptr;     // of the minibatch
  float* inverse = nullptr;  // 1 / its deviation
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float* scale_gradient = nullptr;
  float* shift_gradient = nullptr;
};
// mean and inverse; the running ones move by 1 - momentum.
cudaError_t NormMoments(const Launch& launch, const ActivationShape& shape, const void* x,
                        const NormNumbers& numbers, void* scratch);
// mean and inverse from the running ones.
cudaError_t NormRunningMoments(const Launch& launch, int64_t channels, const NormNumbers& numbers);
cudaError_t Normalise(const Launch& launch, const ActivationShape& shape, const void* x,
                      const NormNumbers& numbers, void* y);
// shift_gradient = sum dy, scale_gradient = sum dy (x - mean) inverse.
cudaError_t NormGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                          const void* dy, const NormNumbers& numbers, void* scratch);
// After those.
cudaError_t NormBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                         const void* dy, const NormNumbers& numbers, void* dx);

// --- group_normalisation_kernel.cu
struct GroupNumbers {
  int groups = 1;
  bool elementwise = false;  // see GroupNormalisationSpec
  float epsilon = 0;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* mean = nullptr;     // of each sample's groups
  float* inverse = nullptr;  // 1 / their deviations
  float* scale_gradient = nullptr;
  float* shift_gradient = nullptr;
};
// y, with mean and inverse.
cudaError_t NormaliseGroups(const Launch& launch, const ActivationShape& shape, const void* x,
                            const GroupNumbers& numbers, void* y);
// scale_gradient and shift_gradient.
cudaError_t GroupGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                           const void* dy, const GroupNumbers& numbers);
cudaError_t GroupBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                          const void* dy, const GroupNumbers& numbers, void* dx);

// --- l2_normalisation_kernel.cu. inverse: 1 / the length at each position of each sample.
cudaError_t NormaliseLengths(const Launch& launch, const ActivationShape& shape, const void* x,
                             const float* scale, float epsilon, float* inverse, void* y);
// scale_gradient[c] = sum dy x inverse.
cudaError_t LengthGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                            const void* dy, const float* inverse, float* scale_gradient);
cudaError_t LengthBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                           const void* dy, const float* scale, const float* inverse, void* dx);

// --- pooling_kernel.cu: pooling in windows that reach beyond the padded input, which cuDNN's do
// not.
struct PoolWindows {
  int64_t channels = 0;
  int batch = 0;
  int in_height = 0, in_width = 0;
  int out_height = 0, out_width = 0;
  int kernel_height = 0, kernel_width = 0;
  int stride = 1, pad = 0;
};
// place[i]: which element of window i won (row * kernel_width + column).
cudaError_t MaxPool(const Launch& launch, Precision precision, const PoolWindows& windows,
                    const void* x, void* y, uint8_t* place);
cudaError_t MaxPoolBackward(const Launch& launch, Precision precision, const PoolWindows& windows,
                            const uint8_t* place, const void* dy, void* dx);
cudaError_t AveragePool(const Launch& launch, Precision precision, const PoolWindows& windows,
                        const void* x, void* y);
cudaError_t AveragePoolBackward(const Launch& launch, Precision precision,
                                const PoolWindows& windows, const void* dy, void* dx);

// --- position_normalisation_kernel.cu
// The numbers of each position, [batch x plane], and of each channel. shift may be null.
struct PositionNumbers {
  float epsilon = 0;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* mean = nullptr;
  float* inverse = nullptr;  // 1 / the deviation
  float* scale_gradient = nullptr;
  float* shift_gradient = nullptr;
};
// y, with mean and inverse.
cudaError_t NormalisePositions(const Launch& launch, const ActivationShape& shape, const void* x,
                               const PositionNumbers& numbers, void* y);
// scale_gradient and shift_gradient.
cudaError_t PositionGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                              const void* dy, const PositionNumbers& numbers);
cudaError_t PositionBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                             const void* dy, const PositionNumbers& numbers, void* dx);

// --- embedding_kernel.cu. shape: of the vectors; words: [batch][plane]; weight:
// [vocabulary][channels].
cudaError_t Embed(const Launch& launch, const ActivationShape& shape, const int32_t* words,
                  const float* weight, void* y);
cudaError_t EmbeddingGradient(const Launch& launch, const ActivationShape& shape,
                              int64_t vocabulary, const int32_t* words, const void* dy,
                              float* gradient);
// y = x + weight [plane][channels] of the position; y may be x.
cudaError_t AddPositions(const Launch& launch, const ActivationShape& shape, const void* x,
                         const float* weight, void* y);
cudaError_t PositionsGradient(const Launch& launch, const ActivationShape& shape, const void* dy,
                              float* gradient);

// --- attention_kernel.cu. See AttentionSpec.
struct AttentionNumbers {
  Precision precision = Precision::kFp32;
  int64_t batch = 0;
  int64_t channels = 0;  // of the output
  int64_t positions = 0;
  int64_t heads = 1;
  bool causal = false;
  float scale = 1;
  // What drops weights (see AttentionSpec); null: nothing does.
  const StepBlock* step = nullptr;
  float dropout = 0;
  int layer = 0;
  float* log_sums = nullptr;  // [batch][heads][positions]: log sum exp(scale query . key)
  float* along = nullptr;     // likewise: sum of dy y

  __host__ __device__ int64_t per_head() const { return channels / heads; }
};
inline constexpr int64_t kMostOfHead = 256;  // channels
// y, with log_sums.
cudaError_t Attend(const Launch& launch, const AttentionNumbers& numbers, const void* x, void* y);
// dx, with `along`.
cudaError_t AttendBackward(const Launch& launch, const AttentionNumbers& numbers, const void* x,
                           const void* y, const void* dy, void* dx);

// --- rearrange_kernel.cu. See RearrangeSpec.
struct Places {
  int rank = 0;
  int64_t extents[8] = {};  // of the output
  int64_t strides[8] = {};
  int64_t offset = 0;
};
cudaError_t Rearrange(const Launch& launch, const ActivationShape& input,
                      const ActivationShape& output, const Places& places, const void* x, void* y);
// dx holds zeros, or is as long as dy.
cudaError_t RearrangeBackward(const Launch& launch, const ActivationShape& input,
                              const ActivationShape& output, const Places& places, const void* dy,
                              void* dx);

// --- softmax_cross_entropy_kernel.cu. shape: classes x positions. Sets of_positions,
// [sums][batch x positions]: what each position adds to the sums of SoftmaxCrossEntropySpec, which
// says what smoothing is. grad_scores may be null.
struct TopRanks {
  int count = 0;
  int of[SoftmaxCrossEntropySpec::kMostTops] = {};
};
struct LabelsOf {  // one of the two is null
  const int32_t* numbers;
  const float* shares;
};
cudaError_t SoftmaxCrossEntropy(const Launch& launch, const ActivationShape& shape, float smoothing,
                                const TopRanks& top, const void* scores, const LabelsOf& labels,
                                float weight, const LossScale* loss_scale, float* of_positions,
                                void* grad_scores);

// --- difference_loss_kernel.cu. Sets of_numbers, [sums][batch x numbers]: what each number adds to
// the sums of DifferenceLossSpec, which says what the terms are. grad_scores may be null.
struct DifferenceLossTerms {
  float factor;
  float delta;
  float weight;
};
cudaError_t DifferenceLoss(const Launch& launch, const ActivationShape& shape,
                           const DifferenceLossTerms& terms, const void* scores,
                           const float* labels, const LossScale* loss_scale, float* of_numbers,
                           void* grad_scores);

// --- add_losses_kernel.cu. Adds what positions (or numbers) add to so many sums, in a fixed order:
// a sample's are the means over its positions.
cudaError_t AddLosses(const Launch& launch, int64_t batch, int64_t positions, int count,
                      const float* of_positions, double* sums);

// --- gradient_norm_kernel.cu. See ArenaArithmetic::MeasureGradients.
// Doubles of scratch memory that n gradients need.
int GradientSums(const Launch& launch, int64_t n);
// Sets step->gradient_factor, and *loss_scale where losses are scaled.
cudaError_t MeasureGradients(const Launch& launch, const float* gradients, int64_t n, bool scales,
                             double* sums, StepBlock* step, LossScale* loss_scale);
cudaError_t ScaleGradients(const Launch& launch, const StepBlock* step, int64_t n,
                           float* gradients);

// --- codec_kernel.cu. common/codec/codec.h on the device, the same bits; see there.
// One array to encode: x, or x - minus where that is not null; residual may be null. Where a number
// is not finite or above `most`, *first_bad becomes its position if that is less than what it held;
// then `out` and the residual are unspecified.
struct EncodeJob {
  const float* x = nullptr;
  const float* minus = nullptr;
  float* residual = nullptr;
  int64_t n = 0;
  std::byte* out = nullptr;  // aligned to 8 bytes
  unsigned long long* first_bad = nullptr;
  int64_t first_bucket = 0;  // buckets of the jobs before it
  float most = std::numeric_limits<float>::max();
};
// `jobs` in device memory, `buckets` those of all.
cudaError_t Encode(const Launch& launch, CodecId codec, const EncodeJob* jobs, int count,
                   int64_t buckets);
// `in` is aligned to 8 bytes.
cudaError_t Decode(const Launch& launch, CodecId codec, const std::byte* in, int64_t n, float* out);

// --- optimiser_kernel.cu. One step of common/optimiser/, the same bits; `numbers` in device
// memory, since they change from step to step, and so is the factor of the gradients; where that is
// 0 nothing moves. slots as Optimiser::Step has them.
using OptimiserStep = cudaError_t (*)(const Launch& launch, const StepNumbers* numbers,
                                      const float* factor, const float* gradient, int64_t n,
                                      float* weights, float* const* slots);
OptimiserStep FindOptimiserStep(OptimiserType type);

}  // namespace kumo::cuda
