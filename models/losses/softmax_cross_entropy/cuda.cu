// Softmax and cross-entropy in one pass: loss = log(sum exp(s - max)) - sum q (s - max), gradient =
// (softmax - q) / batch times the loss scale, both times the weight of the label's class. q is
// one-hot, or the label's shares, smoothed if the spec says so. Kernel: one warp for each position
// of each sample. Another one counts where label and answer are the same: one block for each class
// and sample. The sums stay on the device.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"
#include "models/losses/cuda_sums.h"

namespace kumo::cuda {
namespace {

// The k's of the top-k hits that are counted.
struct TopRanks {
  int count = 0;
  int of[SoftmaxCrossEntropySpec::kMostTops] = {};
};
struct LabelsOf {  // one of `numbers` and `shares` is null
  const int32_t* numbers;
  const float* shares;
  const float* class_weights;  // null: all are 1
  int ignored;                 // a label that counts nothing
  const int32_t* counted;      // positions of each sample that count; null: all
};

// Label and answer of a position; -1: the position is ignored.
struct Verdict {
  int label;
  int answer;
};

// The largest of the numbers that number_of(class) gives, and the first class that has it, in all
// lanes.
template <typename NumberOf>
__device__ void Largest(const NumberOf& number_of, int classes, int lane, float* top, int* best) {
  float most = -INFINITY;
  int first = classes;
  for (int c = lane; c < classes; c += kWarp) {
    const float here = number_of(c);
    if (first == classes || here > most) {
      most = here;
      first = c;
    }
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, most, distance);
    const int place = __shfl_xor_sync(kAllLanes, first, distance);
    if (other > most || (other == most && place < first)) {
      most = other;
      first = place;
    }
  }
  *top = most;
  *best = first;
}

// How many scores are larger than the label's, or may be because they are no numbers; in all lanes.
template <typename T>
__device__ int RankOf(const T* scores, const ChannelsAt<T>& at, int classes, int lane, int label) {
  const float own = ToFloat(scores[at.At(label)]);
  int rank = 0;
  for (int c = lane; c < classes; c += kWarp) {
    const float other = ToFloat(scores[at.At(c)]);
    rank += other < own || (other == own && c >= label) ? 0 : 1;
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    rank += __shfl_xor_sync(kAllLanes, rank, distance);
  }
  return rank;
}

template <typename T>
__global__ void LossKernel(ActivationShape shape, float smoothing, TopRanks ranks, const T* scores,
                           LabelsOf labels, float weight, const LossScale* loss_scale,
                           float* of_positions, Verdict* verdicts, T* grad_scores) {
  const int64_t rows = shape.batch * shape.plane;
  const int64_t row = FirstOfThread() / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= rows) return;  // a whole warp
  const auto classes = static_cast<int>(shape.channels);
  const ChannelsAt<T> at(shape, row);
  if (labels.counted != nullptr && labels.numbers[row] == labels.ignored) {
    for (int i = lane; i < SoftmaxCrossEntropySpec::kTopSum + ranks.count; i += kWarp) {
      of_positions[i * rows + row] = 0;
    }
    if (verdicts != nullptr && lane == 0) verdicts[row] = {-1, -1};
    for (int c = lane; grad_scores != nullptr && c < classes; c += kWarp) {
      Store(0.0f, grad_scores + at.At(c));
    }
    return;  // a whole warp
  }
  float top = 0;
  int best = 0;
  Largest([&](int c) { return ToFloat(scores[at.At(c)]); }, classes, lane, &top, &best);
  float sum = 0;
  for (int c = lane; c < classes; c += kWarp) sum += expf(ToFloat(scores[at.At(c)]) - top);
  sum = SumOfWarp(sum);
  const float kept = 1.0f - smoothing;
  const float dealt = smoothing / static_cast<float>(classes);
  float of_all = 0;
  if (smoothing > 0.0f) {
    for (int c = lane; c < classes; c += kWarp) of_all += ToFloat(scores[at.At(c)]) - top;
    of_all = SumOfWarp(of_all);
  }
  const float* const shares =
      labels.shares == nullptr
          ? nullptr
          : labels.shares + row / shape.plane * shape.channels * shape.plane + row % shape.plane;
  int label = 0;
  float of_shares = 0;
  float of_class = 1.0f;  // the label's weight
  if (shares == nullptr) {
    label = labels.numbers[row];
    if (labels.class_weights != nullptr) of_class = labels.class_weights[label];
  } else {
    float most = 0;
    Largest([&](int c) { return shares[c * shape.plane]; }, classes, lane, &most, &label);
    for (int c = lane; c < classes; c += kWarp) {
      of_shares += shares[c * shape.plane] * (ToFloat(scores[at.At(c)]) - top);
    }
    of_shares = SumOfWarp(of_shares);
    if (labels.class_weights != nullptr) {
      of_class = 0;
      for (int c = lane; c < classes; c += kWarp) {
        of_class += shares[c * shape.plane] * labels.class_weights[c];
      }
      of_class = SumOfWarp(of_class);
    }
  }
  const int rank = ranks.count > 0 ? RankOf(scores, at, classes, lane, label) : 0;
  if (lane == 0) {
    const float of_label = shares == nullptr ? ToFloat(scores[at.At(label)]) - top : of_shares;
    of_positions[SoftmaxCrossEntropySpec::kLossSum * rows + row] =
        of_class * (logf(sum) - (kept * of_label + dealt * of_all));
    of_positions[SoftmaxCrossEntropySpec::kCorrectSum * rows + row] = best == label ? 1.0f : 0.0f;
    if (verdicts != nullptr) verdicts[row] = {label, best};
    for (int i = 0; i < ranks.count; ++i) {
      of_positions[(SoftmaxCrossEntropySpec::kTopSum + i) * rows + row] =
          rank < ranks.of[i] ? 1.0f : 0.0f;
    }
  }
  if (grad_scores == nullptr) return;
  const int64_t all =
      labels.counted == nullptr ? rows : int64_t{shape.batch} * labels.counted[row / shape.plane];
  const float mean = loss_scale->scale * weight / static_cast<float>(all) * of_class;
  for (int c = lane; c < classes; c += kWarp) {
    const float softmax = expf(ToFloat(scores[at.At(c)]) - top) * (mean / sum);
    const float share = shares != nullptr ? shares[c * shape.plane] : c == label ? 1.0f : 0.0f;
    Store(softmax - mean * (kept * share + dealt), grad_scores + at.At(c));
  }
}

// counted[sample]: its positions with another label. A block for each sample.
__global__ void CountKernel(int64_t positions, const int32_t* labels, int ignored,
                            int32_t* counted) {
  int count = 0;
  for (int64_t p = threadIdx.x; p < positions; p += kThreads) {
    count += labels[blockIdx.x * positions + p] == ignored ? 0 : 1;
  }
  count = SumOfBlock(count);
  if (threadIdx.x == 0) counted[blockIdx.x] = count;
}

// of_samples[i][sample]: the mean over the positions that count. A block for each sum and sample.
__global__ void MeansKernel(int64_t batch, int64_t positions, const int32_t* counted,
                            const float* of_positions, float* of_samples) {
  double sum = 0;
  for (int64_t p = threadIdx.x; p < positions; p += kThreads) {
    sum += static_cast<double>(of_positions[blockIdx.x * positions + p]);
  }
  sum = SumOfBlock(sum);
  if (threadIdx.x != 0) return;
  const int count = counted[blockIdx.x % batch];
  of_samples[blockIdx.x] = count == 0 ? 0.0f : static_cast<float>(sum / count);
}

// of_samples, [2 x classes][batch]: the counts of SoftmaxCrossEntropySpec::overlaps. A block for
// each class and sample.
__global__ void OverlapKernel(int64_t batch, int64_t positions, const Verdict* verdicts,
                              float* of_samples) {
  const auto own = static_cast<int>(blockIdx.x / batch);
  const Verdict* const of_sample = verdicts + blockIdx.x % batch * positions;
  int both = 0;
  int either = 0;
  for (int64_t p = threadIdx.x; p < positions; p += kThreads) {
    const bool is = of_sample[p].label == own;
    const bool got = of_sample[p].answer == own;
    both += is && got ? 1 : 0;
    either += is || got ? 1 : 0;
  }
  both = SumOfBlock(both);
  either = SumOfBlock(either);
  if (threadIdx.x != 0) return;
  of_samples[blockIdx.x] = static_cast<float>(both);
  of_samples[gridDim.x + blockIdx.x] = static_cast<float>(either);
}

// Sets of_positions, [means][batch x positions]: the terms that each position adds to the sums of
// SoftmaxCrossEntropySpec. shape: classes x positions. verdicts and grad_scores may be null.
cudaError_t SoftmaxCrossEntropy(const Launch& launch, const ActivationShape& shape, float smoothing,
                                const TopRanks& top, const void* scores, const LabelsOf& labels,
                                float weight, const LossScale* loss_scale, float* of_positions,
                                Verdict* verdicts, void* grad_scores) {
  constexpr int kRows = kThreads / kWarp;
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, LossKernel<T>, (shape.batch * shape.plane + kRows - 1) / kRows, shape,
                 smoothing, top, static_cast<const T*>(scores), labels, weight, loss_scale,
                 of_positions, verdicts, static_cast<T*>(grad_scores));
  });
}

class SoftmaxCrossEntropyOp final : public LossOp {
 public:
  SoftmaxCrossEntropyOp(CudaEngine& engine, const SoftmaxCrossEntropySpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        of_positions_(engine, spec.means() * max_batch * spec.scores.plane(), "sums of positions"),
        verdicts_(engine, spec.overlaps ? max_batch * spec.scores.plane() : 0,
                  "classes of positions"),
        overlaps_(engine, spec.overlaps ? 2 * spec.scores.channels() * max_batch : 0,
                  "overlaps of classes"),
        class_weights_(engine, static_cast<int64_t>(spec.class_weights.size()),
                       "the class weights"),
        counted_(engine, ignores() ? max_batch : 0, "positions that count"),
        of_samples_(engine, ignores() ? spec.means() * max_batch : 0, "sums of samples") {
    for (const int top : spec.top) top_.of[top_.count++] = top;
    if (class_weights_.empty()) return;
    KUMO_CUDA(engine_, cudaMemcpyAsync(class_weights_.data(), spec_.class_weights.data(),
                                       static_cast<size_t>(class_weights_.bytes()),
                                       cudaMemcpyHostToDevice, engine_.stream()));
  }

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const void* const scores = arrays.inputs[0];
    const void* const labels = arrays.targets[0].values;
    void* const grad_scores = arrays.grad_input(0);
    const Launch launch = engine_.launch();
    const int64_t positions = spec_.scores.plane();
    if (ignores()) {
      KUMO_CUDA(engine_,
                Queue(launch, CountKernel, batch, positions, static_cast<const int32_t*>(labels),
                      spec_.ignored, counted_.data()));
    }
    KUMO_CUDA(engine_,
              SoftmaxCrossEntropy(launch, engine_.ShapeOf(spec_.scores, batch), spec_.smoothing,
                                  top_, scores, Labels(labels), spec_.weight, engine_.loss_scale(),
                                  of_positions_.data(), verdicts_.data(), grad_scores));
    if (spec_.overlaps) {
      const int64_t classes = spec_.scores.channels();
      KUMO_CUDA(engine_, Queue(launch, OverlapKernel, classes * batch, batch, positions,
                               verdicts_.data(), overlaps_.data()));
      KUMO_CUDA(engine_, AddLosses(launch, batch, /*positions=*/1, static_cast<int>(2 * classes),
                                   overlaps_.data(), sums + spec_.means()));
    }
    if (!ignores()) {
      KUMO_CUDA(engine_,
                AddLosses(launch, batch, positions, spec_.means(), of_positions_.data(), sums));
      return;
    }
    KUMO_CUDA(engine_, Queue(launch, MeansKernel, int64_t{spec_.means()} * batch, batch, positions,
                             counted_.data(), of_positions_.data(), of_samples_.data()));
    KUMO_CUDA(engine_, AddLosses(launch, batch, 1, spec_.means(), of_samples_.data(), sums));
  }

 private:
  bool ignores() const { return spec_.ignored >= 0 && !spec_.shares; }
  LabelsOf Labels(const void* labels) const {
    const float* const weights = class_weights_.data();
    if (spec_.shares) return {nullptr, static_cast<const float*>(labels), weights, -1, nullptr};
    return {static_cast<const int32_t*>(labels), nullptr, weights, spec_.ignored, counted_.data()};
  }

  CudaEngine& engine_;
  SoftmaxCrossEntropySpec spec_;
  TopRanks top_;
  DeviceArray<float> of_positions_;   // [means][batch x positions]
  DeviceArray<Verdict> verdicts_;     // [batch x positions]; null if they are not wanted
  DeviceArray<float> overlaps_;       // [2 x classes][batch]; likewise
  DeviceArray<float> class_weights_;  // null if there are none
  DeviceArray<int32_t> counted_;      // by sample; null if no label is ignored
  DeviceArray<float> of_samples_;     // [means][batch]; likewise
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CudaEngine& engine, const SoftmaxCrossEntropySpec& spec,
                                 int max_batch) {
  return std::make_unique<SoftmaxCrossEntropyOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
