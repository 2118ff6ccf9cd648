// cuDNN's handles, descriptors and AddTensor.
#include <algorithm>
#include <cstring>
#include <utility>

#include <cudnn.h>

#include "tests/simulated_gpu/cudnn_objects.h"

namespace kumo::simulated_gpu {

std::optional<Number> NumberOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return Number::kFloat32;
    case CUDNN_DATA_HALF:
      return Number::kFloat16;
    case CUDNN_DATA_BFLOAT16:
      return Number::kBfloat16;
    default:
      return std::nullopt;
  }
}

std::optional<Tensor> Packed(cudnnTensorFormat_t format, cudnnDataType_t type,
                             std::array<int64_t, 4> dims) {
  const std::optional<Number> number = NumberOf(type);
  if (!number || std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 1; })) {
    return std::nullopt;
  }
  const auto [n, c, h, w] = dims;
  if (format == CUDNN_TENSOR_NCHW) return Tensor{true, *number, dims, {c * h * w, h * w, w, 1}};
  if (format == CUDNN_TENSOR_NHWC) return Tensor{true, *number, dims, {c * h * w, 1, w * c, c}};
  return std::nullopt;
}

size_t Tensor::bytes() const {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * strides[d];
  return static_cast<size_t>(last + 1) * BytesOf(number);
}

namespace {

// each(position among the numbers without gaps, index in the array)
template <typename Each>
void ForEach(const Tensor& tensor, Each each) {
  int64_t i = 0;
  for (int64_t n = 0; n < tensor.dims[0]; ++n) {
    for (int64_t c = 0; c < tensor.dims[1]; ++c) {
      for (int64_t h = 0; h < tensor.dims[2]; ++h) {
        const int64_t row = n * tensor.strides[0] + c * tensor.strides[1] + h * tensor.strides[2];
        for (int64_t w = 0; w < tensor.dims[3]; ++w) each(i++, row + w * tensor.strides[3]);
      }
    }
  }
}

// Whether the array holds just the numbers, in order.
bool IsPlain(const Tensor& tensor) {
  const auto [n, c, h, w] = tensor.dims;
  return tensor.number == Number::kFloat32 &&
         tensor.strides == std::array<int64_t, 4>{c * h * w, h * w, w, 1};
}

}  // namespace

std::vector<float> Read(const Tensor& tensor, const void* array) {
  std::vector<float> values(static_cast<size_t>(tensor.size()));
  if (IsPlain(tensor)) {
    std::memcpy(values.data(), array, values.size() * sizeof(float));
  } else {
    ForEach(tensor, [&](int64_t i, int64_t at) { values[i] = Load(tensor.number, array, at); });
  }
  return values;
}

void Write(const Tensor& tensor, const std::vector<float>& values, Scale scale, void* array) {
  if (IsPlain(tensor) && scale.alpha == 1.0f && scale.beta == 0.0f) {
    std::memcpy(array, values.data(), values.size() * sizeof(float));
    return;
  }
  ForEach(tensor, [&](int64_t i, int64_t at) {
    float value = scale.alpha * values[i];
    if (scale.beta != 0.0f) value += scale.beta * Load(tensor.number, array, at);
    Store(tensor.number, value, at, array);
  });
}

cudnnStatus_t Submit(Machine& machine, cudnnHandle_t handle, Work work) {
  CUstream_st* const stream = machine.Find(handle->stream, handle->device);
  if (stream == nullptr || handle->device != CurrentDevice() ||
      stream->queue->device != handle->device) {
    return CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH;
  }
  return machine.Submit(stream, std::move(work)) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                : CUDNN_STATUS_EXECUTION_FAILED;
}

namespace {

template <typename T>
cudnnStatus_t Create(T** object) {
  return CudnnCall([&](Machine&) {
    *object = new T();
    return CUDNN_STATUS_SUCCESS;
  });
}

// Also where the device has failed.
template <typename T>
cudnnStatus_t Destroy(T* object) {
  delete object;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Set(std::optional<Tensor> value, Tensor* tensor) {
  return CudnnCall([&](Machine&) {
    if (!value) return CUDNN_STATUS_BAD_PARAM;
    *tensor = *value;
    return CUDNN_STATUS_SUCCESS;
  });
}

bool AnyBelow(int64_t least, const std::array<int64_t, 2>& values) {
  return values[0] < least || values[1] < least;
}

}  // namespace
}  // namespace kumo::simulated_gpu

using namespace kumo::simulated_gpu;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const cudnnStatus_t status = Create(handle);
  if (status == CUDNN_STATUS_SUCCESS) (*handle)->device = CurrentDevice();
  return status;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return Destroy(handle); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return CudnnCall([&](Machine& machine) {
    CUstream_st* const found = machine.Find(stream, handle->device);
    if (found == nullptr || found->queue->device != handle->device) return CUDNN_STATUS_BAD_PARAM;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

void cudnnGetLastErrorString(char* message, size_t bytes) {
  if (bytes > 0) *message = '\0';  // the status says it all
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH:
      return "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "a status that the simulated GPU has no words for";
  }
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  return Create(descriptor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  return Destroy(descriptor);
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  return Set(Packed(format, type, {n, c, h, w}), &descriptor->tensor);
}
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
  std::optional<Tensor> tensor = Packed(CUDNN_TENSOR_NCHW, type, {n, c, h, w});
  if (tensor) tensor->strides = {n_stride, c_stride, h_stride, w_stride};
  return Set(tensor, &descriptor->tensor);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor) {
  return Create(descriptor);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  return Destroy(descriptor);
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return Set(Packed(format, type, {k, c, h, w}), &descriptor->tensor);
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* descriptor) {
  return Create(descriptor);
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor) {
  return Destroy(descriptor);
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t mode, cudnnNanPropagation_t,
                                          int window_height, int window_width, int vertical_padding,
                                          int horizontal_padding, int vertical_stride,
                                          int horizontal_stride) {
  return CudnnCall([&](Machine&) {
    const cudnnPoolingStruct pooling = {true,
                                        mode,
                                        {window_height, window_width},
                                        {vertical_padding, horizontal_padding},
                                        {vertical_stride, horizontal_stride}};
    if (AnyBelow(1, pooling.window) || AnyBelow(0, pooling.pad) || AnyBelow(1, pooling.stride)) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    *descriptor = pooling;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* descriptor) {
  return Create(descriptor);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  return Destroy(descriptor);
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  return CudnnCall([&](Machine&) {
    const cudnnConvolutionStruct convolution = {
        true, {pad_h, pad_w},   {stride_h, stride_w}, {dilation_h, dilation_w},
        mode, descriptor->math, descriptor->groups};
    if (AnyBelow(0, convolution.pad) || AnyBelow(1, convolution.stride) ||
        AnyBelow(1, convolution.dilation) || !NumberOf(compute_type)) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    if (compute_type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
    *descriptor = convolution;
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  return CudnnCall([&](Machine&) {
    if (groups < 1) return CUDNN_STATUS_BAD_PARAM;
    descriptor->groups = groups;
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t math) {
  return CudnnCall([&](Machine&) {
    descriptor->math = math;
    return CUDNN_STATUS_SUCCESS;
  });
}

// Each dimension of a is c's or 1; a number that stands for several is added to each of them.
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             cudnnTensorDescriptor_t a_descriptor, const void* a, const void* beta,
                             cudnnTensorDescriptor_t c_descriptor, void* c) {
  return CudnnCall([&](Machine& machine) {
    const Tensor from = a_descriptor->tensor;
    const Tensor to = c_descriptor->tensor;
    if (!from.set || !to.set || from.number != to.number) return CUDNN_STATUS_BAD_PARAM;
    Tensor broadcast = from;
    for (size_t d = 0; d < to.dims.size(); ++d) {
      if (from.dims[d] != to.dims[d] && from.dims[d] != 1) return CUDNN_STATUS_BAD_PARAM;
      if (from.dims[d] == 1) broadcast.strides[d] = 0;
      broadcast.dims[d] = to.dims[d];
    }
    return Submit(machine, handle,
                  [=, scale = Scale(alpha, beta)] { Write(to, Read(broadcast, a), scale, c); });
  });
}
