// Bytes of images to activations, by the formula of common/job/pixels.h. The host's bits in
// float32: the formula is a difference and a product, which nothing can contract.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void PixelsKernel(ActivationShape shape, const uint8_t* pixels, PixelArrays formula,
                             T* inputs) {
  const int64_t size = shape.channels * shape.plane;
  for (int64_t i = FirstOfThread(); i < shape.batch * size; i += ThreadsOfGrid()) {
    const int64_t sample = i / size;
    const auto place = static_cast<uint32_t>(i - sample * size);
    auto x = static_cast<float>(pixels[i]);
    if (formula.mean != nullptr) x -= formula.mean[place];
    const float scale =
        formula.scales != nullptr ? formula.scales[place / shape.plane] : formula.scale;
    Store(scale * x, inputs + sample * size + PlaceOf<T>(shape, place));
  }
}

}  // namespace

cudaError_t LoadPixels(const Launch& launch, const ActivationShape& shape, const uint8_t* pixels,
                       const PixelArrays& formula, void* inputs) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, PixelsKernel<T>, BlocksFor(launch, shape.size()), shape, pixels, formula,
                 static_cast<T*>(inputs));
  });
}

}  // namespace kumo::cuda
