// Max and average pooling by cuDNN, for pooling ops and for convolutions that pool their output.
// Not in ceil mode.
//
// Owned by an op, used by its caller; not thread-safe.
#pragma once

#include <map>

#include "models/backend/cuda/tensors.h"
#include "models/backend/op.h"

namespace kumo::cuda {

class Pooling {
 public:
  Pooling(CudaEngine& engine, const PoolingSpec& spec);

  void Forward(int batch, const void* input, void* output);
  void Backward(int batch, const void* input, const void* output, const void* grad_output,
                void* grad_input);

 private:
  using Descriptor = Handle<cudnnPoolingDescriptor_t, cudnnDestroyPoolingDescriptor>;
  struct Tensors {
    TensorDescriptor input;
    TensorDescriptor output;
  };
  const Tensors& Of(int batch);

  CudaEngine& engine_;
  PoolingSpec spec_;
  Descriptor pooling_;
  std::map<int, Tensors> tensors_;  // by batch size
};

}  // namespace kumo::cuda
