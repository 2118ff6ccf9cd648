#include "models/ops/convolution/cuda_filter.h"

namespace kumo::cuda {
namespace {

bool IsAligned(const float* filter) { return reinterpret_cast<uintptr_t>(filter) % 16 == 0; }

}  // namespace

void ConvolutionFilter::Bind(const float* weight, float* gradient) {
  weight_ = weight;
  weight_gradient_ = gradient;
  copies_ = engine_.channels_last() || !IsAligned(weight) || !IsAligned(gradient);
  if (!copies_ || copy_.size() > 0) return;
  const int64_t bytes = size() * engine_.element_bytes();
  copy_ = DeviceArray<std::byte>(engine_, bytes, "cuDNN's copies of filters");
  gradient_copy_ = DeviceArray<std::byte>(engine_, bytes, "their gradients");
}

void ConvolutionFilter::Load() {
  if (!copies_) return;
  const Planes planes = Matrices(spec_.channels_per_group(), kernel());
  KUMO_CUDA(engine_, Transpose(engine_.launch(), Precision::kFp32, weight_, planes,
                               engine_.precision(), copy_.data()));
}

const void* ConvolutionFilter::data() const {
  if (copies_) return copy_.data();
  return weight_;
}

void* ConvolutionFilter::gradient() {
  if (copies_) return gradient_copy_.data();
  return weight_gradient_;
}

void ConvolutionFilter::StoreGradient() {
  if (!copies_) return;
  const Planes planes = Matrices(kernel(), spec_.channels_per_group());
  KUMO_CUDA(engine_, Transpose(engine_.launch(), engine_.precision(), gradient_copy_.data(), planes,
                               Precision::kFp32, weight_gradient_));
}

Planes ConvolutionFilter::Matrices(int64_t rows, int64_t columns) const {
  if (engine_.channels_last()) return {spec_.outputs, rows, columns};
  return {1, 1, size()};
}

}  // namespace kumo::cuda
