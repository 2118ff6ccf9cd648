// Descriptors of activations for cuDNN.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <cudnn.h>

#include "common/base/status.h"
#include "models/backend/cuda/cuda_engine.h"
#include "models/backend/cuda/handle.h"
#include "models/tensor/tensor.h"

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

inline cudnnTensorFormat_t FormatOf(const CudaEngine& engine) {
  return engine.channels_last() ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

// Limits of one call of cuDNN: its reference limits a tensor to 2^31 numbers, and pooling is
// reported to take no more than 65,535 samples. InvalidArgument if a layer's activations exceed
// them.
inline constexpr int64_t kMostTensorNumbers = (int64_t{1} << 31) - 1;
inline constexpr int kMostPooledSamples = 65535;
inline Status CheckTakes(std::span<const Shape> activations, int max_batch,
                         int most_samples = std::numeric_limits<int>::max()) {
  for (const Shape& shape : activations) {
    const int64_t most = std::min<int64_t>(most_samples, kMostTensorNumbers / shape.size());
    if (max_batch <= most) continue;
    return InvalidArgument("cuDNN takes " + std::to_string(most) + " samples of " +
                           std::to_string(shape.size()) + " numbers at once, not " +
                           std::to_string(max_batch) +
                           "; set evaluation.minibatch lower, or sync.minibatch_parts higher");
  }
  return OkStatus();
}

// Descriptor of the device's activations.
inline TensorDescriptor Describe(CudaEngine& engine, const Shape& shape, int batch) {
  TensorDescriptor descriptor;
  KUMO_CUDA(engine, cudnnCreateTensorDescriptor(descriptor.receive()));
  KUMO_CUDA(engine, cudnnSetTensor4dDescriptor(
                        descriptor.get(), FormatOf(engine), TypeOf(engine.precision()), batch,
                        static_cast<int>(shape.channels()), static_cast<int>(shape.height()),
                        static_cast<int>(shape.width())));
  return descriptor;
}

}  // namespace kumo::cuda
