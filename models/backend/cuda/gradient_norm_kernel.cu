// L2 norm of all gradients, and the factor of the current step that follows from the norm:
//
//   norm = sqrt(sum g^2) / loss scale,   factor = min(1, clip_norm / norm) / loss scale
//
// With fp16 and a norm that is not finite the factor is 0: the step is left out, and the loss scale
// is halved, unless it is 1 already. It is doubled after 2,000 good steps, up to 2^24.
//
// The sum takes two kernels: each block leaves the sum of its threads, and one block adds these and
// computes the factor. Sums are in double and in a fixed order, without atomic additions, so they
// repeat their bits, and the squares of float32 gradients neither overflow nor vanish.
//
// The factor stays in device memory (StepBlock), where the optimiser's kernels read it: the host
// never waits for it, and a recorded step contains no decision of the host.
#include <cfloat>

#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

__global__ void SquaresKernel(const float* gradients, int64_t n, double* sums) {
  double sum = 0;
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    const auto number = static_cast<double>(gradients[i]);
    sum += number * number;
  }
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Launched with one block.
__global__ void FactorKernel(const double* sums, int count, bool scales, StepBlock* step,
                             LossScale* loss_scale) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += sums[i];
  sum = SumOfBlock(sum);
  if (threadIdx.x != 0) return;
  const float scale = loss_scale->scale;
  const double norm = sqrt(sum) / static_cast<double>(scale);
  const bool finite = norm <= DBL_MAX;
  if (scales && !finite && scale > 1.0f) {
    step->gradient_factor = 0.0f;
    *loss_scale = {scale / 2.0f, 0};
    return;
  }
  // Gradients that are not finite although no loss scale is to blame stay as they are: the encoding
  // of the contribution finds and reports them (GradientCodec).
  const auto limit = static_cast<double>(step->clip_norm);
  const double clip = limit > 0 && finite && norm > limit ? limit / norm : 1.0;
  step->gradient_factor = static_cast<float>(clip / static_cast<double>(scale));
  if (!scales) return;
  constexpr int kGoodSteps = 2000;
  constexpr float kMost = 0x1p24f;
  const bool grows = loss_scale->good_steps + 1 >= kGoodSteps && scale < kMost;
  *loss_scale = grows ? LossScale{2.0f * scale, 0}
                      : LossScale{scale, min(loss_scale->good_steps + 1, kGoodSteps)};
}

__global__ void ScaleKernel(const StepBlock* step, int64_t n, float* gradients) {
  const float factor = step->gradient_factor;
  if (factor == 1.0f) return;
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    gradients[i] = factor == 0.0f ? 0.0f : factor * gradients[i];
  }
}

// Launched with one block.
__global__ void InverseNormKernel(float epsilon, const double* sums, int count, double* inverse) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += sums[i];
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) *inverse = 1.0 / (sqrt(sum) + static_cast<double>(epsilon));
}

__global__ void MultiplyKernel(const double* factor, int64_t n, float* x) {
  const auto by = static_cast<float>(*factor);
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) x[i] *= by;
}

}  // namespace

int GradientSums(const Launch& launch, int64_t n) { return BlocksFor(launch, n); }

cudaError_t MeasureGradients(const Launch& launch, const float* gradients, int64_t n, bool scales,
                             double* sums, StepBlock* step, LossScale* loss_scale) {
  const int count = GradientSums(launch, n);
  const cudaError_t queued = Queue(launch, SquaresKernel, count, gradients, n, sums);
  if (queued != cudaSuccess) return queued;
  return Queue(launch, FactorKernel, 1, sums, count, scales, step, loss_scale);
}

cudaError_t Normalise(const Launch& launch, float epsilon, int64_t n, double* sums, float* x) {
  const int count = GradientSums(launch, n);
  double* const inverse = sums + count;
  cudaError_t queued = Queue(launch, SquaresKernel, count, x, n, sums);
  if (queued != cudaSuccess) return queued;
  queued = Queue(launch, InverseNormKernel, 1, epsilon, sums, count, inverse);
  if (queued != cudaSuccess) return queued;
  return Queue(launch, MultiplyKernel, BlocksFor(launch, n), inverse, n, x);
}

cudaError_t ScaleGradients(const Launch& launch, const StepBlock* step, int64_t n,
                           float* gradients) {
  return Queue(launch, ScaleKernel, BlocksFor(launch, n), step, n, gradients);
}

}  // namespace kumo::cuda
