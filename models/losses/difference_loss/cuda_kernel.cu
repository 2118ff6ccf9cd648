// The loss of how far scores are from their labels' numbers, and its gradient: a thread for each of
// them.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

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

}  // namespace

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

}  // namespace kumo::cuda
