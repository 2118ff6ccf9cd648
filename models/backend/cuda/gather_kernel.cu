// Minibatches of a data set that is kept on the device.
#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

__global__ void GatherKernel(const uint8_t* pixels, const uint8_t* labels, int64_t size,
                             float scale, const int64_t* indices, int batch, float* inputs,
                             int32_t* batch_labels) {
  for (int64_t i = FirstOfThread(); i < batch * size; i += ThreadsOfGrid()) {
    inputs[i] = scale * static_cast<float>(pixels[indices[i / size] * size + i % size]);
    if (i < batch) batch_labels[i] = labels[indices[i]];
  }
}

}  // namespace

cudaError_t Gather(const Launch& launch, const uint8_t* pixels, const uint8_t* labels, int64_t size,
                   float scale, const int64_t* indices, int batch, float* inputs,
                   int32_t* batch_labels) {
  return Queue(launch, GatherKernel, BlocksFor(launch, batch * size), pixels, labels, size, scale,
               indices, batch, inputs, batch_labels);
}

}  // namespace kumo::cuda
