// Soft Dice loss; formulas as on the CPU. Kernels: one thread for each position finds the softmax's
// denominator, a block for each sample and class adds up the class's sums, and one thread for each
// position makes the gradients. The sums stay on the device.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"
#include "models/losses/cuda_sums.h"

namespace kumo::cuda {
namespace {

// Settings of DiceSpec, and the labels: one of `classes` and `y` is null.
struct DiceTerms {
  const int32_t* classes;
  const float* y;
  int ignored;
  float smooth;
  float weight;
};

// Terms of a class of a sample: D, and U + k.
struct DiceOfClass {
  float dice;
  float denominator;
};

// Position `row`, counted through the samples.
__device__ inline bool DiceIgnores(const DiceTerms& terms, int64_t row) {
  return terms.classes != nullptr && terms.ignored >= 0 && terms.classes[row] == terms.ignored;
}
__device__ inline float DiceLabel(const DiceTerms& terms, const ActivationShape& shape, int64_t row,
                                  int64_t channel) {
  if (terms.classes != nullptr) return terms.classes[row] == channel ? 1.0f : 0.0f;
  return terms.y[(row / shape.plane * shape.channels + channel) * shape.plane + row % shape.plane];
}
// logarithms: null for the sigmoid.
__device__ inline float DiceProbability(float score, const float* logarithms, int64_t row) {
  if (logarithms != nullptr) return expf(score - logarithms[row]);
  return 1.0f / (1.0f + expf(-score));
}

// logarithms[row]: the logarithm of the softmax's denominator.
template <typename T>
__global__ void DiceSoftmaxKernel(ActivationShape shape, const T* scores, float* logarithms) {
  for (int64_t row = FirstOfThread(); row < shape.batch * shape.plane; row += ThreadsOfGrid()) {
    const ChannelsAt<T> at(shape, row);
    float top = ToFloat(scores[at.At(0)]);
    for (int64_t c = 1; c < shape.channels; ++c) top = fmaxf(top, ToFloat(scores[at.At(c)]));
    float sum = 0;
    for (int64_t c = 0; c < shape.channels; ++c) sum += expf(ToFloat(scores[at.At(c)]) - top);
    logarithms[row] = top + logf(sum);
  }
}

// Block sample x channels + channel. losses: 1 - D.
template <typename T>
__global__ void DiceSumsKernel(ActivationShape shape, DiceTerms terms, const T* scores,
                               const float* logarithms, DiceOfClass* of_classes, float* losses) {
  const int64_t sample = blockIdx.x / shape.channels;
  const int64_t channel = blockIdx.x % shape.channels;
  double both = 0;
  double all = 0;
  for (int64_t p = threadIdx.x; p < shape.plane; p += kThreads) {
    const int64_t row = sample * shape.plane + p;
    if (DiceIgnores(terms, row)) continue;
    const float score = ToFloat(scores[ChannelsAt<T>(shape, row).At(channel)]);
    const float probability = DiceProbability(score, logarithms, row);
    const float label = DiceLabel(terms, shape, row, channel);
    both += static_cast<double>(probability * label);
    all += static_cast<double>(probability + label);
  }
  both = SumOfBlock(both);
  all = SumOfBlock(all);
  if (threadIdx.x != 0) return;
  const auto smooth = static_cast<double>(terms.smooth);
  const double dice = (2 * both + smooth) / (all + smooth);
  of_classes[blockIdx.x] = {static_cast<float>(dice), static_cast<float>(all + smooth)};
  losses[blockIdx.x] = static_cast<float>(1 - dice);
}

template <typename T>
__global__ void DiceGradientKernel(ActivationShape shape, DiceTerms terms, const T* scores,
                                   const float* logarithms, const DiceOfClass* of_classes,
                                   const LossScale* loss_scale, T* gradients) {
  const float mean =
      loss_scale->scale * terms.weight / static_cast<float>(shape.batch * shape.channels);
  for (int64_t row = FirstOfThread(); row < shape.batch * shape.plane; row += ThreadsOfGrid()) {
    const ChannelsAt<T> at(shape, row);
    const DiceOfClass* const of_sample = of_classes + row / shape.plane * shape.channels;
    const bool ignored = DiceIgnores(terms, row);
    const auto of_probability = [&](int64_t c) {
      return mean * (of_sample[c].dice - 2.0f * DiceLabel(terms, shape, row, c)) /
             of_sample[c].denominator;
    };
    float along = 0;
    for (int64_t c = 0; !ignored && logarithms != nullptr && c < shape.channels; ++c) {
      along += DiceProbability(ToFloat(scores[at.At(c)]), logarithms, row) * of_probability(c);
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      float gradient = 0;
      if (!ignored) {
        const float p = DiceProbability(ToFloat(scores[at.At(c)]), logarithms, row);
        gradient = logarithms != nullptr ? p * (of_probability(c) - along)
                                         : p * (1.0f - p) * of_probability(c);
      }
      Store(gradient, gradients + at.At(c));
    }
  }
}

class DiceOp final : public LossOp {
 public:
  DiceOp(CudaEngine& engine, const DiceSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        logarithms_(engine, spec.softmax ? max_batch * spec.scores.plane() : 0,
                    "logarithms of a softmax"),
        of_classes_(engine, max_batch * spec.scores.channels(), "the Dice of classes"),
        losses_(engine, max_batch * spec.scores.channels(), "sums of classes") {}

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = engine_.ShapeOf(spec_.scores, batch);
    const void* const labels = arrays.targets[0].values;
    const bool are_y = spec_.labels_are_y();
    const DiceTerms terms = {are_y ? nullptr : static_cast<const int32_t*>(labels),
                             are_y ? static_cast<const float*>(labels) : nullptr, spec_.ignored,
                             spec_.smooth, spec_.weight};
    const int64_t rows = shape.batch * shape.plane;
    KUMO_CUDA(engine_, WithNumber(shape.precision, [&](auto number) {
                using T = decltype(number);
                const auto* const scores = static_cast<const T*>(arrays.inputs[0]);
                const float* const logarithms = logarithms_.data();
                if (spec_.softmax) {
                  const cudaError_t queued =
                      Queue(launch, DiceSoftmaxKernel<T>, BlocksFor(launch, rows), shape, scores,
                            logarithms_.data());
                  if (queued != cudaSuccess) return queued;
                }
                const cudaError_t queued =
                    Queue(launch, DiceSumsKernel<T>, shape.batch * shape.channels, shape, terms,
                          scores, logarithms, of_classes_.data(), losses_.data());
                if (queued != cudaSuccess || arrays.grad_input(0) == nullptr) return queued;
                return Queue(launch, DiceGradientKernel<T>, BlocksFor(launch, rows), shape, terms,
                             scores, logarithms, of_classes_.data(), engine_.loss_scale(),
                             static_cast<T*>(arrays.grad_input(0)));
              }));
    KUMO_CUDA(engine_, AddLosses(launch, batch, spec_.scores.channels(), DiceSpec::sums(),
                                 losses_.data(), sums));
  }

 private:
  CudaEngine& engine_;
  DiceSpec spec_;
  DeviceArray<float> logarithms_;        // by position; null for the sigmoid
  DeviceArray<DiceOfClass> of_classes_;  // [batch][channels]
  DeviceArray<float> losses_;            // likewise
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CudaEngine& engine, const DiceSpec& spec, int max_batch) {
  return std::make_unique<DiceOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
