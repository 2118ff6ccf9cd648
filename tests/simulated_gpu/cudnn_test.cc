// The simulated cuDNN against the plain reference of tests/models, for each type of numbers and
// order of dimensions; and what it refuses.
#include <cudnn.h>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/models/ops/reference.h"
#include "tests/simulated_gpu/numbers.h"
#include "tests/simulated_gpu/simulated_gpu.h"

namespace kumo::simulated_gpu {
namespace {

struct Kind {
  const char* name;
  cudnnDataType_t type;
  Number number;
  cudnnTensorFormat_t format;
  double tolerance;
};

constexpr int kBatch = 3;
const ConvolutionSpec kSpec = {
    .input = {5, 7, 6}, .outputs = 4, .kernel_height = 3, .kernel_width = 2, .stride = 2, .pad = 1};

// Memory of the device, which the host can read when the device has been waited for.
class Numbers {
 public:
  Numbers(const Kind& kind, const Shape& shape, int batch) : kind_(kind), shape_(shape) {
    size_ = batch * shape.size();
    EXPECT_EQ(cudaMalloc(&memory_, static_cast<size_t>(size_) * BytesOf(kind.number)), cudaSuccess);
    EXPECT_EQ(cudnnCreateTensorDescriptor(&descriptor_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetTensor4dDescriptor(
                  descriptor_, kind.format, kind.type, batch, static_cast<int>(shape.channels()),
                  static_cast<int>(shape.height()), static_cast<int>(shape.width())),
              CUDNN_STATUS_SUCCESS);
  }
  ~Numbers() {
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    EXPECT_EQ(cudnnDestroyTensorDescriptor(descriptor_), CUDNN_STATUS_SUCCESS);
  }
  // Numbers that each type holds exactly; returns them in the reference's order.
  reference::Numbers Fill(uint64_t seed) {
    Rng rng(seed, RngPurpose::kTest);
    reference::Numbers values(static_cast<size_t>(size_));
    for (int64_t i = 0; i < size_; ++i) {
      values[i] = (static_cast<double>(rng.NextBelow(17)) - 8) / 8;
      Store(kind_.number, static_cast<float>(values[i]), At(i), memory_);
    }
    return values;
  }
  double operator[](int64_t i) const {
    return static_cast<double>(Load(kind_.number, memory_, At(i)));
  }
  void* memory() { return memory_; }
  cudnnTensorDescriptor_t descriptor() const { return descriptor_; }

 private:
  int64_t At(int64_t i) const {
    if (kind_.format == CUDNN_TENSOR_NCHW) return i;
    const int64_t plane = shape_.plane();
    const int64_t within = i % shape_.size();
    return i - within + within % plane * shape_.channels() + within / plane;
  }

  const Kind kind_;
  const Shape shape_;
  int64_t size_ = 0;
  void* memory_ = nullptr;
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

class CudnnTest : public testing::TestWithParam<Kind> {
 protected:
  CudnnTest() {
    Reset();
    EXPECT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateFilterDescriptor(&filter_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetFilter4dDescriptor(filter_, GetParam().type, GetParam().format, kSpec.outputs,
                                         static_cast<int>(kSpec.input.channels()),
                                         kSpec.kernel_height, kSpec.kernel_width),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateConvolutionDescriptor(&convolution_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolution2dDescriptor(convolution_, 1, 1, 2, 2, 1, 1,
                                              CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
              CUDNN_STATUS_SUCCESS);
  }
  ~CudnnTest() override {
    (void)cudnnDestroyConvolutionDescriptor(convolution_);
    (void)cudnnDestroyFilterDescriptor(filter_);
    (void)cudnnDestroy(handle_);
    Reset();
  }

  static Shape WeightShape() {
    return {kSpec.input.channels(), kSpec.kernel_height, kSpec.kernel_width};
  }
  void ExpectNear(double found, double expected) {
    EXPECT_NEAR(found, expected, GetParam().tolerance * (1 + std::abs(expected)));
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnFilterDescriptor_t filter_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
};

TEST_P(CudnnTest, AConvolutionIsTheReferencesScaledAndAdded) {
  Numbers x(GetParam(), kSpec.input, kBatch);
  Numbers w(GetParam(), WeightShape(), kSpec.outputs);
  Numbers y(GetParam(), kSpec.output(), kBatch);
  const reference::Numbers before = y.Fill(3);
  const reference::Numbers convolved = reference::Convolve(kSpec, kBatch, x.Fill(1), w.Fill(2), {});
  const float alpha = 0.5f;
  const float beta = 2.0f;
  ASSERT_EQ(
      cudnnConvolutionForward(handle_, &alpha, x.descriptor(), x.memory(), filter_, w.memory(),
                              convolution_, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                              &beta, y.descriptor(), y.memory()),
      CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (size_t i = 0; i < convolved.size(); ++i) {
    ExpectNear(y[static_cast<int64_t>(i)], 0.5 * convolved[i] + 2 * before[i]);
  }
}

// sum dy (x * w) is linear in x and in w: its gradients are what each unit of them adds.
TEST_P(CudnnTest, GradientsAreThoseOfTheConvolution) {
  Numbers x(GetParam(), kSpec.input, kBatch);
  Numbers w(GetParam(), WeightShape(), kSpec.outputs);
  Numbers dy(GetParam(), kSpec.output(), kBatch);
  Numbers dx(GetParam(), kSpec.input, kBatch);
  Numbers dw(GetParam(), WeightShape(), kSpec.outputs);
  reference::Numbers xs = x.Fill(1);
  reference::Numbers ws = w.Fill(2);
  const reference::Numbers dys = dy.Fill(3);
  const float one = 1.0f;
  const float zero = 0.0f;
  ASSERT_EQ(cudnnConvolutionBackwardData(
                handle_, &one, filter_, w.memory(), dy.descriptor(), dy.memory(), convolution_,
                CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr, 0, &zero, dx.descriptor(), dx.memory()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(
      cudnnConvolutionBackwardFilter(handle_, &one, x.descriptor(), x.memory(), dy.descriptor(),
                                     dy.memory(), convolution_, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                     nullptr, 0, &zero, filter_, dw.memory()),
      CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto difference = [&](double* at) {
    const double kept = *at;
    double sums[2];
    for (const int up : {0, 1}) {
      *at = up;
      const reference::Numbers y = reference::Convolve(kSpec, kBatch, xs, ws, {});
      sums[up] = 0;
      for (size_t i = 0; i < y.size(); ++i) sums[up] += dys[i] * y[i];
    }
    *at = kept;
    return sums[1] - sums[0];
  };
  for (size_t i = 0; i < xs.size(); i += 7)
    ExpectNear(dx[static_cast<int64_t>(i)], difference(&xs[i]));
  for (size_t i = 0; i < ws.size(); ++i)
    ExpectNear(dw[static_cast<int64_t>(i)], difference(&ws[i]));
}

TEST_P(CudnnTest, MaxPoolingIsTheReferences) {
  const PoolingSpec spec = {{2, 7, 6}, 3, 3, 2, 1};
  Numbers x(GetParam(), spec.input, kBatch);
  Numbers y(GetParam(), spec.output(), kBatch);
  const reference::Numbers expected = reference::MaxPool(spec, kBatch, x.Fill(1));
  cudnnPoolingDescriptor_t pooling = nullptr;
  ASSERT_EQ(cudnnCreatePoolingDescriptor(&pooling), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX_DETERMINISTIC,
                                        CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 2, 2),
            CUDNN_STATUS_SUCCESS);
  const float one = 1.0f;
  const float zero = 0.0f;
  ASSERT_EQ(cudnnPoolingForward(handle_, pooling, &one, x.descriptor(), x.memory(), &zero,
                                y.descriptor(), y.memory()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (size_t i = 0; i < expected.size(); ++i) ExpectNear(y[static_cast<int64_t>(i)], expected[i]);
  ASSERT_EQ(cudnnDestroyPoolingDescriptor(pooling), CUDNN_STATUS_SUCCESS);
}

TEST_P(CudnnTest, AWrongShapeAndTooSmallAWorkspaceAreRefused) {
  Numbers x(GetParam(), kSpec.input, kBatch);
  Numbers w(GetParam(), WeightShape(), kSpec.outputs);
  Numbers y(GetParam(), kSpec.output(), kBatch);
  const float one = 1.0f;
  const float zero = 0.0f;
  const auto convolve = [&](Numbers& to, size_t workspace_bytes) {
    std::vector<std::byte> workspace(workspace_bytes);
    const cudnnStatus_t status =
        cudnnConvolutionForward(handle_, &one, x.descriptor(), x.memory(), filter_, w.memory(),
                                convolution_, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, workspace.data(),
                                workspace_bytes, &zero, to.descriptor(), to.memory());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return status;
  };
  size_t needed = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardWorkspaceSize(handle_, x.descriptor(), filter_, convolution_,
                                                    y.descriptor(), CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
                                                    &needed),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(convolve(x, needed), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(convolve(y, needed - 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(convolve(y, needed), CUDNN_STATUS_SUCCESS);
}

// Integers over 8 are exact in all; a sum of their products is rounded once.
INSTANTIATE_TEST_SUITE_P(
    Kinds, CudnnTest,
    testing::Values(
        Kind{"Float", CUDNN_DATA_FLOAT, Number::kFloat32, CUDNN_TENSOR_NCHW, 1e-6},
        Kind{"FloatChannelsLast", CUDNN_DATA_FLOAT, Number::kFloat32, CUDNN_TENSOR_NHWC, 1e-6},
        Kind{"Half", CUDNN_DATA_HALF, Number::kFloat16, CUDNN_TENSOR_NHWC, 1e-3},
        Kind{"Bfloat16", CUDNN_DATA_BFLOAT16, Number::kBfloat16, CUDNN_TENSOR_NHWC, 8e-3}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace kumo::simulated_gpu
