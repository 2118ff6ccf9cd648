// Descriptors of activations for cuDNN.
#pragma once

#include <cstdint>

#include <cudnn.h>

#include "models/backend/cuda/engine.h"
#include "models/backend/cuda/handle.h"
#include "models/tensor.h"

namespace kumo::cuda {

using TensorDescriptor = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

inline cudnnDataType_t TypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return CUDNN_DATA_FLOAT;
    case Precision::kBf16:
      return CUDNN_DATA_BFLOAT16;
    case Precision::kFp16:
      return CUDNN_DATA_HALF;
  }
  return CUDNN_DATA_FLOAT;
}

inline cudnnTensorFormat_t FormatOf(const Engine& engine) {
  return engine.channels_last() ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

// Descriptor of the device's activations.
inline TensorDescriptor Describe(Engine& engine, const Shape& shape, int batch) {
  TensorDescriptor descriptor;
  KUMO_CUDA(engine, cudnnCreateTensorDescriptor(descriptor.receive()));
  KUMO_CUDA(engine, cudnnSetTensor4dDescriptor(
                        descriptor.get(), FormatOf(engine), TypeOf(engine.precision()), batch,
                        static_cast<int>(shape.channels()), static_cast<int>(shape.height()),
                        static_cast<int>(shape.width())));
  return descriptor;
}

}  // namespace kumo::cuda
