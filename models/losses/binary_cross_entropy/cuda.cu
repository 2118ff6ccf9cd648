// Binary cross-entropy; formulas as on the CPU. Kernel: a block for each sample. The sums stay on
// the device.
#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"
#include "models/losses/cuda_sums.h"

namespace kumo::cuda {
namespace {

// By channel; null: all are 1.
struct BinaryWeights {
  const float* of_class;
  const float* positive;
  float of_loss;
};

// of_samples: [sums][batch].
template <typename T>
__global__ void BinaryCrossEntropyKernel(ActivationShape shape, BinaryWeights weights,
                                         const T* scores, const float* labels,
                                         const LossScale* loss_scale, float* of_samples,
                                         T* grad_scores) {
  const int64_t numbers = shape.channels * shape.plane;
  const int64_t first = blockIdx.x * numbers;
  const float mean =
      loss_scale->scale * weights.of_loss / static_cast<float>(shape.batch * numbers);
  double loss = 0;
  int64_t wrong = 0;
  for (int64_t i = threadIdx.x; i < numbers; i += kThreads) {
    const int64_t channel = i / shape.plane;
    const float weight = weights.of_class == nullptr ? 1.0f : weights.of_class[channel];
    const float positive = weights.positive == nullptr ? 1.0f : weights.positive[channel];
    const int64_t at = first + PlaceOf<T>(shape, i);
    const float s = ToFloat(scores[at]);
    const float y = labels[first + i];
    const float small = expf(-fabsf(s));
    const float of_negative = fmaxf(-s, 0.0f) + log1pf(small);
    loss += static_cast<double>(weight *
                                ((1.0f - y) * s + (1.0f + (positive - 1.0f) * y) * of_negative));
    wrong += (s > 0.0f) == (y > 0.5f) ? 0 : 1;
    if (grad_scores == nullptr) continue;
    const float sigmoid = s < 0.0f ? small / (1.0f + small) : 1.0f / (1.0f + small);
    Store(mean * weight * ((1.0f - y + positive * y) * sigmoid - positive * y), grad_scores + at);
  }
  loss = SumOfBlock(loss);
  wrong = SumOfBlock(wrong);
  if (threadIdx.x != 0) return;
  const auto count = static_cast<double>(numbers);
  of_samples[BinaryCrossEntropySpec::kLossSum * shape.batch + blockIdx.x] =
      static_cast<float>(loss / count);
  of_samples[BinaryCrossEntropySpec::kCorrectSum * shape.batch + blockIdx.x] =
      static_cast<float>(1 - static_cast<double>(wrong) / count);
  of_samples[BinaryCrossEntropySpec::kExactSum * shape.batch + blockIdx.x] =
      wrong == 0 ? 1.0f : 0.0f;
}

cudaError_t BinaryCrossEntropy(const Launch& launch, const ActivationShape& shape,
                               const BinaryWeights& weights, const void* scores,
                               const float* labels, const LossScale* loss_scale, float* of_samples,
                               void* grad_scores) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, BinaryCrossEntropyKernel<T>, shape.batch, shape, weights,
                 static_cast<const T*>(scores), labels, loss_scale, of_samples,
                 static_cast<T*>(grad_scores));
  });
}

class BinaryCrossEntropyOp final : public LossOp {
 public:
  BinaryCrossEntropyOp(CudaEngine& engine, const BinaryCrossEntropySpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        of_samples_(engine, BinaryCrossEntropySpec::sums() * max_batch, "sums of samples"),
        class_weights_(engine, std::ssize(spec.class_weights), "the class weights"),
        positive_weights_(engine, std::ssize(spec.positive_weights), "the positive weights") {
    Copy(spec_.class_weights, &class_weights_);
    Copy(spec_.positive_weights, &positive_weights_);
  }

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_, BinaryCrossEntropy(
                           launch, engine_.ShapeOf(spec_.scores, batch),
                           {class_weights_.data(), positive_weights_.data(), spec_.weight},
                           arrays.inputs[0], static_cast<const float*>(arrays.targets[0].values),
                           engine_.loss_scale(), of_samples_.data(), arrays.grad_input(0)));
    KUMO_CUDA(engine_, AddLosses(launch, batch, 1, BinaryCrossEntropySpec::sums(),
                                 of_samples_.data(), sums));
  }

 private:
  void Copy(const std::vector<float>& from, DeviceArray<float>* to) {
    if (from.empty()) return;
    KUMO_CUDA(engine_, cudaMemcpyAsync(to->data(), from.data(), static_cast<size_t>(to->bytes()),
                                       cudaMemcpyHostToDevice, engine_.stream()));
  }

  CudaEngine& engine_;
  BinaryCrossEntropySpec spec_;
  DeviceArray<float> of_samples_;  // [sums][batch]
  // Null if there are none.
  DeviceArray<float> class_weights_;
  DeviceArray<float> positive_weights_;
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CudaEngine& engine, const BinaryCrossEntropySpec& spec,
                                 int max_batch) {
  return std::make_unique<BinaryCrossEntropyOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
