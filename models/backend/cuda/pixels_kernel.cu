// Images' bytes to activations by the formula of common/job/pixels.h. The host's bits in float32: a
// difference and a product, which nothing can contract.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void PixelsKernel(ActivationShape shape, const uint8_t* pixels, float scale,
                             const float* mean, T* inputs) {
  const int64_t size = shape.channels * shape.plane;
  for (int64_t i = FirstOfThread(); i < shape.batch * size; i += ThreadsOfGrid()) {
    const int64_t sample = i / size;
    const auto place = static_cast<uint32_t>(i - sample * size);
    auto x = static_cast<float>(pixels[i]);
    if (mean != nullptr) x -= mean[place];
    Store(scale * x, inputs + sample * size + PlaceOf<T>(shape, place));
  }
}

}  // namespace

cudaError_t LoadPixels(const Launch& launch, const ActivationShape& shape, const uint8_t* pixels,
                       float scale, const float* mean, void* inputs) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, PixelsKernel<T>, BlocksFor(launch, shape.size()), shape, pixels, scale,
                 mean, static_cast<T*>(inputs));
  });
}

}  // namespace kumo::cuda
