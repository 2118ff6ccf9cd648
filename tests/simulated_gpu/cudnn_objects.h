// What cuDNN's handles and descriptors are here. They are objects of the heap, so that the address
// sanitizer sees one that is used after its end.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <cudnn.h>

#include "tests/simulated_gpu/numbers.h"
#include "tests/simulated_gpu/runtime.h"

namespace kumo::simulated_gpu {

// Four dimensions in the order samples, channels, height, width, and the distances of neighbours.
// A filter is one of outputs, channels, height, width.
struct Tensor {
  bool set = false;
  Number number = Number::kFloat32;
  std::array<int64_t, 4> dims{};
  std::array<int64_t, 4> strides{};

  int64_t size() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  // From its beginning to its end.
  size_t bytes() const;
  bool operator==(const Tensor&) const = default;
};

std::optional<Number> NumberOf(cudnnDataType_t type);
// Packed; nothing for what is not simulated or is no tensor.
std::optional<Tensor> Packed(cudnnTensorFormat_t format, cudnnDataType_t type,
                             std::array<int64_t, 4> dims);
// In the order of the dimensions, without gaps.
std::vector<float> Read(const Tensor& tensor, const void* array);
// array = alpha values + beta array; where beta is 0, what was there is not read.
struct Scale {
  Scale(const void* alpha_at, const void* beta_at)
      : alpha(*static_cast<const float*>(alpha_at)), beta(*static_cast<const float*>(beta_at)) {}
  float alpha;
  float beta;
};
void Write(const Tensor& tensor, const std::vector<float>& values, Scale scale, void* array);

// Output positions of a window that goes over `size` numbers.
inline int64_t Positions(int64_t size, int64_t window, int64_t pad, int64_t stride,
                         int64_t dilation = 1) {
  return (size + 2 * pad - ((window - 1) * dilation + 1)) / stride + 1;
}

}  // namespace kumo::simulated_gpu

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  kumo::simulated_gpu::Tensor tensor;
};

struct cudnnFilterStruct {
  kumo::simulated_gpu::Tensor tensor;
};

struct cudnnPoolingStruct {
  bool set = false;
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  std::array<int64_t, 2> window{};
  std::array<int64_t, 2> pad{};
  std::array<int64_t, 2> stride{};
};

struct cudnnConvolutionStruct {
  bool set = false;
  std::array<int64_t, 2> pad{};
  std::array<int64_t, 2> stride{};
  std::array<int64_t, 2> dilation{};
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int64_t groups = 1;
};

namespace kumo::simulated_gpu {

// One call of cuDNN: call(Machine&).
template <typename F>
cudnnStatus_t CudnnCall(F call) {
  return Library(Api::kCudnn, CUDNN_STATUS_EXECUTION_FAILED, call);
}

// Queues work on the handle's stream, which has to be of the device that the thread is on.
cudnnStatus_t Submit(Machine& machine, cudnnHandle_t handle, Work work);

}  // namespace kumo::simulated_gpu
