// Minibatches of a data set that is kept on the device.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void GatherKernel(ActivationShape shape, const uint8_t* pixels, const uint8_t* labels,
                             float scale, const int64_t* indices, T* inputs,
                             int32_t* batch_labels) {
  const int64_t size = shape.channels * shape.plane;
  for (int64_t i = FirstOfThread(); i < shape.batch * size; i += ThreadsOfGrid()) {
    const int64_t sample = i / size;
    const uint8_t pixel = pixels[indices[sample] * size + i % size];
    Store(scale * static_cast<float>(pixel), inputs + sample * size + PlaceOf<T>(shape, i % size));
    if (i < shape.batch) batch_labels[i] = labels[indices[i]];
  }
}

}  // namespace

cudaError_t Gather(const Launch& launch, const ActivationShape& shape, const uint8_t* pixels,
                   const uint8_t* labels, float scale, const int64_t* indices, void* inputs,
                   int32_t* batch_labels) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, GatherKernel<T>, BlocksFor(launch, shape.size()), shape, pixels, labels,
                 scale, indices, static_cast<T*>(inputs), batch_labels);
  });
}

}  // namespace kumo::cuda
