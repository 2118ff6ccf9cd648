// Squared and Huber losses. Kernel: one thread for each score. The sums stay on the device.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"
#include "models/losses/cuda_sums.h"

namespace kumo::cuda {
namespace {

// The settings of DifferenceLossSpec.
struct DifferenceLossTerms {
  float factor;
  float delta;
  float weight;
};

template <typename T>
__global__ void DifferenceLossKernel(ActivationShape shape, DifferenceLossTerms terms,
                                     const T* scores, const float* labels,
                                     const LossScale* loss_scale, float* of_numbers,
                                     T* grad_scores) {
  const int64_t of_sample = shape.channels * shape.plane;
  const int64_t numbers = shape.batch * of_sample;
  const float mean = loss_scale->scale * terms.weight * terms.factor / static_cast<float>(numbers);
  for (int64_t i = FirstOfThread(); i < numbers; i += ThreadsOfGrid()) {
    const int64_t at = i / of_sample * of_sample + PlaceOf<T>(shape, i % of_sample);
    const float difference = ToFloat(scores[at]) - labels[i];
    const float far = fabsf(difference);
    of_numbers[DifferenceLossSpec::kLossSum * numbers + i] =
        terms.factor * (far < terms.delta ? far * far / 2 : terms.delta * (far - terms.delta / 2));
    of_numbers[DifferenceLossSpec::kAbsoluteSum * numbers + i] = far;
    if (grad_scores == nullptr) continue;
    const float held = difference > terms.delta    ? terms.delta
                       : difference < -terms.delta ? -terms.delta
                                                   : difference;  // what is no number stays none
    Store(mean * held, grad_scores + at);
  }
}

// Sets of_numbers, [sums][batch x elements]: the terms that each element adds to the sums of
// DifferenceLossSpec. grad_scores may be null.
cudaError_t DifferenceLoss(const Launch& launch, const ActivationShape& shape,
                           const DifferenceLossTerms& terms, const void* scores,
                           const float* labels, const LossScale* loss_scale, float* of_numbers,
                           void* grad_scores) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, DifferenceLossKernel<T>,
                 BlocksFor(launch, shape.batch * shape.channels * shape.plane), shape, terms,
                 static_cast<const T*>(scores), labels, loss_scale, of_numbers,
                 static_cast<T*>(grad_scores));
  });
}

class DifferenceLossOp final : public LossOp {
 public:
  DifferenceLossOp(CudaEngine& engine, const DifferenceLossSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        of_numbers_(engine, DifferenceLossSpec::sums() * max_batch * spec.scores.size(),
                    "sums of numbers") {}

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const void* const scores = arrays.inputs[0];
    const void* const labels = arrays.targets[0].values;
    void* const grad_scores = arrays.grad_input(0);
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_, DifferenceLoss(launch, engine_.ShapeOf(spec_.scores, batch),
                                      {spec_.factor, spec_.delta, spec_.weight}, scores,
                                      static_cast<const float*>(labels), engine_.loss_scale(),
                                      of_numbers_.data(), grad_scores));
    KUMO_CUDA(engine_, AddLosses(launch, batch, spec_.scores.size(), DifferenceLossSpec::sums(),
                                 of_numbers_.data(), sums));
  }

 private:
  CudaEngine& engine_;
  DifferenceLossSpec spec_;
  DeviceArray<float> of_numbers_;  // [sums][batch x numbers]
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CudaEngine& engine, const DifferenceLossSpec& spec,
                                 int max_batch) {
  return std::make_unique<DifferenceLossOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
