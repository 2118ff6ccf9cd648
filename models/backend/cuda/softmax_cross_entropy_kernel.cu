// Softmax and cross-entropy in one, a warp for each sample: loss = log(sum exp(s - max)) -
// (s_label - max), gradient (softmax - one-hot) / batch.
#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

constexpr unsigned kAll = 0xFFFFFFFFu;

// The largest score and the first class that has it, in all lanes.
__device__ void Largest(const float* score, int classes, int lane, float* top, int* best) {
  float most = -INFINITY;
  int first = classes;
  for (int c = lane; c < classes; c += kWarp) {
    if (first == classes || score[c] > most) {
      most = score[c];
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

__global__ void LossKernel(int batch, int classes, const float* scores, const int32_t* labels,
                           float* losses, int32_t* hits, float* grad_scores) {
  const int sample = static_cast<int>(FirstOfThread() / kWarp);
  const int lane = threadIdx.x % kWarp;
  if (sample >= batch) return;  // a whole warp
  const float* score = scores + int64_t{sample} * classes;
  float top = 0;
  int best = 0;
  Largest(score, classes, lane, &top, &best);
  float sum = 0;
  for (int c = lane; c < classes; c += kWarp) sum += expf(score[c] - top);
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAll, sum, distance);
  }
  const int label = labels[sample];
  if (lane == 0) {
    losses[sample] = logf(sum) - (score[label] - top);
    hits[sample] = best == label ? 1 : 0;
  }
  if (grad_scores == nullptr) return;
  const float mean = 1.0f / static_cast<float>(batch);
  for (int c = lane; c < classes; c += kWarp) {
    const float softmax = expf(score[c] - top) * (mean / sum);
    grad_scores[int64_t{sample} * classes + c] = c == label ? softmax - mean : softmax;
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

cudaError_t SoftmaxCrossEntropy(const Launch& launch, int batch, int classes, const float* scores,
                                const int32_t* labels, float* losses, int32_t* hits,
                                float* grad_scores) {
  const int blocks = (batch + kThreads / kWarp - 1) / (kThreads / kWarp);
  return Queue(launch, LossKernel, blocks, batch, classes, scores, labels, losses, hits,
               grad_scores);
}

cudaError_t AddLosses(const Launch& launch, int batch, const float* losses, const int32_t* hits,
                      StepResult* sums) {
  return Queue(launch, AddKernel, 1, batch, losses, hits, sums);
}

}  // namespace kumo::cuda
