// cuDNN's descriptors of what layers work on.
#pragma once

#include <cstdint>

#include <cudnn.h>

#include "models/backend/cuda/engine.h"
#include "models/backend/cuda/handle.h"
#include "models/tensor.h"

namespace kumo::cuda {

using TensorDescriptor = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

// Of float32 activations, samples x channels x height x width.
inline TensorDescriptor Describe(Engine& engine, const Shape& shape, int batch) {
  TensorDescriptor descriptor;
  KUMO_CUDA(engine, cudnnCreateTensorDescriptor(descriptor.receive()));
  KUMO_CUDA(engine, cudnnSetTensor4dDescriptor(
                        descriptor.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, batch,
                        static_cast<int>(shape.channels), static_cast<int>(shape.height),
                        static_cast<int>(shape.width)));
  return descriptor;
}

}  // namespace kumo::cuda
