// Softmax and cross-entropy in one, a warp for each sample: loss = log(sum exp(s - max)) -
// sum q (s - max), gradient (softmax - q) / batch times the loss scale, where q is one-hot, or what
// smoothing makes of that.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

constexpr unsigned kAll = 0xFFFFFFFFu;

// The largest score and the first class that has it, in all lanes.
template <typename T>
__device__ void Largest(const T* score, int classes, int lane, float* top, int* best) {
  float most = -INFINITY;
  int first = classes;
  for (int c = lane; c < classes; c += kWarp) {
    const float here = ToFloat(score[c]);
    if (first == classes || here > most) {
      most = here;
      first = c;
    }
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAll, most, distance);
    const int at = __shfl_xor_sync(kAll, first, distance);
    if (other > most || (other == most && at < first)) {
      most = other;
      first = at;
    }
  }
  *top = most;
  *best = first;
}

// The sum over the warp, in all lanes.
__device__ inline float SumOfWarp(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAll, value, distance);
  }
  return value;
}

template <typename T>
__global__ void LossKernel(int batch, int classes, float smoothing, const T* scores,
                           const int32_t* labels, const LossScale* loss_scale, float* losses,
                           int32_t* hits, T* grad_scores) {
  const int sample = static_cast<int>(FirstOfThread() / kWarp);
  const int lane = threadIdx.x % kWarp;
  if (sample >= batch) return;  // a whole warp
  const T* score = scores + int64_t{sample} * classes;
  float top = 0;
  int best = 0;
  Largest(score, classes, lane, &top, &best);
  float sum = 0;
  for (int c = lane; c < classes; c += kWarp) sum += expf(ToFloat(score[c]) - top);
  sum = SumOfWarp(sum);
  const float kept = 1.0f - smoothing;
  const float dealt = smoothing / static_cast<float>(classes);
  float of_all = 0;
  if (smoothing > 0.0f) {
    for (int c = lane; c < classes; c += kWarp) of_all += ToFloat(score[c]) - top;
    of_all = SumOfWarp(of_all);
  }
  const int label = labels[sample];
  if (lane == 0) {
    const float of_label = ToFloat(score[label]) - top;
    losses[sample] = logf(sum) - (kept * of_label + dealt * of_all);
    hits[sample] = best == label ? 1 : 0;
  }
  if (grad_scores == nullptr) return;
  const float mean = loss_scale->scale / static_cast<float>(batch);
  for (int c = lane; c < classes; c += kWarp) {
    const float softmax = expf(ToFloat(score[c]) - top) * (mean / sum);
    const float target = c == label ? kept + dealt : dealt;
    Store(softmax - mean * target, grad_scores + int64_t{sample} * classes + c);
  }
}

// One block.
__global__ void AddKernel(int batch, const float* losses, const int32_t* hits, StepResult* sums) {
  double loss = 0;
  int correct = 0;
  for (int n = static_cast<int>(threadIdx.x); n < batch; n += kThreads) {
    loss += static_cast<double>(losses[n]);
    correct += hits[n];
  }
  loss = SumOfBlock(loss);
  correct = SumOfBlock(correct);
  if (threadIdx.x != 0) return;
  sums->loss_sum += loss;
  sums->correct += correct;
}

}  // namespace

cudaError_t SoftmaxCrossEntropy(const Launch& launch, Precision precision, int batch, int classes,
                                float smoothing, const void* scores, const int32_t* labels,
                                const LossScale* loss_scale, float* losses, int32_t* hits,
                                void* grad_scores) {
  constexpr int kSamples = kThreads / kWarp;
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, LossKernel<T>, (batch + kSamples - 1) / kSamples, batch, classes,
                 smoothing, static_cast<const T*>(scores), labels, loss_scale, losses, hits,
                 static_cast<T*>(grad_scores));
  });
}

cudaError_t AddLosses(const Launch& launch, int batch, const float* losses, const int32_t* hits,
                      StepResult* sums) {
  return Queue(launch, AddKernel, 1, batch, losses, hits, sums);
}

}  // namespace kumo::cuda
