// What the CUDA backend makes of a GPU that fails, is full or has little room: on the simulated
// one, which fails when it is told to.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cudnn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/backend/cuda/cuda_backend.h"
#include "models/net/net.h"
#include "models/network.h"
#include "tests/models/numbers.h"
#include "tests/models/single_arrays.h"
#include "tests/simulated_gpu/simulated_gpu.h"

namespace kumo {
namespace {

using simulated_gpu::Api;
using testing::HasSubstr;

class CudaFailureTest : public testing::Test {
 protected:
  CudaFailureTest() { Start({}); }
  ~CudaFailureTest() override {
    End();
    simulated_gpu::Reset();
  }

  void Start(const simulated_gpu::Settings& settings, const CudaOptions& options = {}) {
    End();
    simulated_gpu::Reset(settings);
    backend_ = MakeCudaBackend(options).value();
  }
  void End() {
    net_.reset();
    weights_ = {};
    gradients_ = {};
    backend_.reset();
  }

  // A convolution and a product, with their vectors, ready for a step.
  void MakeNet() {
    const model::Network network = ParseNetwork(R"(
      name: "small"
      input { channels: 2 height: 8 width: 8 }
      layers { name: "conv" convolution { outputs: 4 kernel: 3 pad: 1 } }
      layers { name: "relu" relu {} }
      layers { name: "flat" flatten {} }
      layers { name: "fc" fully_connected { outputs: 4 } }
      layers { name: "loss" softmax_cross_entropy {} })",
                                                "small")
                                       .value();
    net_ = Net::Make(network, kBatch, backend_.get()).value();
    const ParameterLayout layout = ParameterLayout::Make(net_->tensors()).value();
    weights_ = {*backend_, layout.size(), "weights"};
    gradients_ = {*backend_, layout.size(), "gradients"};
    std::vector<float> start(static_cast<size_t>(layout.size()));
    ASSERT_TRUE(net_->InitialWeights(1, layout, start).ok());
    backend_->Write(start.data(), start.size() * sizeof(float), weights_.data());
    ASSERT_TRUE(net_->Bind(layout, weights_.data(), gradients_.data()).ok());
  }
  Status Step() {
    std::vector<float> inputs(static_cast<size_t>(kBatch * net_->input().size()));
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i * i % 97) / 97.0f;
    const std::vector<int32_t> labels(kBatch, 1);
    const Numbers batch = {kBatch, inputs, labels};
    EXPECT_TRUE(batch.LoadInto(net_.get()).ok());
    backend_->SetStep({});
    backend_->Repeat({kBatch, false, nullptr}, [&] { net_->Train(); });
    return net_->TakeSums().status();
  }

  static constexpr int kBatch = 3;
  std::unique_ptr<Backend> backend_;
  DeviceArray<float> weights_;
  DeviceArray<float> gradients_;
  std::unique_ptr<Net> net_;
};

TEST_F(CudaFailureTest, AFaultIsSeenByWhoWaitsAndStays) {
  MakeNet();
  ASSERT_TRUE(Step().ok());
  simulated_gpu::FaultAtWork(7);
  const Status status = Step();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("CUDA: an illegal memory access was encountered"));
  EXPECT_EQ(backend_->Wait().message(), status.message());
  EXPECT_EQ(Step().message(), status.message());
}

TEST_F(CudaFailureTest, ALibrarysFailureNamesTheCallAndTheLayer) {
  MakeNet();
  simulated_gpu::FailCall(Api::kCudnn, 5, CUDNN_STATUS_INTERNAL_ERROR);
  Status status = Step();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("cuDNN: CUDNN_STATUS_INTERNAL_ERROR in cudnn"));
  EXPECT_THAT(status.message(), HasSubstr("layer conv"));

  Start({});
  MakeNet();
  simulated_gpu::FailCall(Api::kCublasLt, 3, CUBLAS_STATUS_NOT_SUPPORTED);
  status = Step();
  EXPECT_THAT(status.message(), HasSubstr("cuBLAS: the functionality requested is not supported"));
  EXPECT_THAT(status.message(), HasSubstr("layer fc"));
}

TEST_F(CudaFailureTest, AFailureWhileAStepIsRecordedIsTheCallsOwn) {
  MakeNet();
  ASSERT_TRUE(Step().ok());
  // In the step that is recorded, after its mathematics are set.
  simulated_gpu::FailCall(Api::kCudnn, 2, CUDNN_STATUS_EXECUTION_FAILED);
  EXPECT_THAT(Step().message(),
              HasSubstr("CUDNN_STATUS_EXECUTION_FAILED in cudnnConvolutionForward"));
}

// The step comes to its mark, but there is nothing any more that could be coded there.
TEST_F(CudaFailureTest, AStepThatFailsBeforeItsMarkHandsNothingOn) {
  DeviceArray<float> numbers(*backend_, 600, "numbers");
  GradientCodec::Encoding encoding;
  encoding.codec = &CodecOf(CodecId::kOneBit);
  encoding.x = numbers.data();
  encoding.n = numbers.size();
  const size_t bytes = encoding.codec->EncodedBytes(600);
  const std::shared_ptr<std::byte> code = backend_->MakeCode(bytes);
  encoding.code = {code.get(), bytes};
  backend_->EncodeAt(0, {&encoding, 1}, [] { ADD_FAILURE() << "a step that failed has no codes"; });
  backend_->Repeat({1, false, nullptr}, [&] {
    simulated_gpu::FailCall(Api::kRuntime, 1, cudaErrorUnknown);
    backend_->Zero(numbers.data(), 600 * sizeof(float));
    backend_->Mark(0);
  });
  const Status status = backend_->Wait();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("cudaMemsetAsync"));
}

TEST_F(CudaFailureTest, ARecordingThatFailedLeavesTheProcessUsable) {
  MakeNet();
  ASSERT_TRUE(Step().ok());
  simulated_gpu::FailCall(Api::kCudnn, 2, CUDNN_STATUS_EXECUTION_FAILED);
  ASSERT_FALSE(Step().ok());
  End();
  EXPECT_EQ(simulated_gpu::BytesInUse(), 0u);
  Start({});
  MakeNet();
  for (int s = 0; s < 3; ++s) EXPECT_TRUE(Step().ok());
}

TEST_F(CudaFailureTest, SixteenBitsAndTf32GoTogether) {
  Start({}, {.precision = Precision::kBf16, .tf32 = true});
  MakeNet();
  for (int s = 0; s < 3; ++s) {
    const Status status = Step();
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Whichever call cuBLAS does not support: only a product that adds the bias or sums its gradient as
// well can be done without, and then the gradients are the same.
TEST_F(CudaFailureTest, WhatCublasDoesNotSupportIsDoneInAnotherWayIfThereIsOne) {
  const auto gradients_with_failure_at = [&](int64_t call, Status* status) {
    Start({});
    MakeNet();
    if (call > 0) simulated_gpu::FailCall(Api::kCublasLt, call, CUBLAS_STATUS_NOT_SUPPORTED);
    *status = Step();
    std::vector<float> read(static_cast<size_t>(gradients_.size()));
    (void)backend_->Read(gradients_.data(), read.size() * sizeof(float), read.data());
    return read;
  };
  Status status;
  const std::vector<float> expected = gradients_with_failure_at(0, &status);
  ASSERT_TRUE(status.ok());
  int went_well = 0;
  int failed = 0;
  for (int64_t call = 1; call <= 40; ++call) {
    const std::vector<float> found = gradients_with_failure_at(call, &status);
    if (!status.ok()) {
      ++failed;
      continue;
    }
    ++went_well;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << call;
    }
  }
  // A bias and its gradient are added and summed without the epilogue, and two products have a
  // second algorithm.
  EXPECT_EQ(failed, 36);
  EXPECT_EQ(went_well, 4);
}

TEST_F(CudaFailureTest, ALittleMemoryIsEnoughForALittleNet) {
  Start({.memory_bytes = size_t{40} << 20});
  MakeNet();
  for (int s = 0; s < 3; ++s) EXPECT_TRUE(Step().ok());
}

TEST_F(CudaFailureTest, AConvolutionByTensorCoresHasTheWorkspaceThatItNeeds) {
  Start({}, {.tf32 = true});
  const ConvolutionSpec spec = {
      .input = {3, 9, 9}, .outputs = 4, .kernel_height = 3, .kernel_width = 3};
  const auto op = backend_->MakeOp(spec, kBatch).value();
  DeviceArray<float> weights(*backend_, 4 * 27 + 4, "weights");
  float* const tensors[] = {weights.data(), weights.data() + 4 * 27};
  DeviceArray<float> x(*backend_, kBatch * spec.input.size(), "x");
  DeviceArray<float> y(*backend_, kBatch * spec.output().size(), "y");
  op->Bind(tensors, tensors);
  ForwardOf(op.get(), {kBatch, true}, x.data(), y.data());
  const Status status = backend_->Wait();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(CudaFailureTest, ADeterministicStepRepeatsItsBits) {
  Start({}, {.deterministic = true});
  MakeNet();
  std::vector<std::vector<float>> gradients;
  for (int s = 0; s < 4; ++s) {
    ASSERT_TRUE(Step().ok());
    std::vector<float>& read = gradients.emplace_back(static_cast<size_t>(gradients_.size()));
    ASSERT_TRUE(backend_->Read(gradients_.data(), read.size() * sizeof(float), read.data()).ok());
  }
  for (int s = 1; s < 4; ++s) EXPECT_EQ(gradients[s], gradients[0]) << "step " << s;
}

// Whichever call cuDNN does not support, of the first step's or of the one that is recorded: only
// the first of its guesses for the convolution, and for the gradient of its filter, has another one
// behind it, and that one is kept.
TEST_F(CudaFailureTest, ADeterministicConvolutionTakesTheNextGuessIfOneDoesNotRun) {
  int went_well = 0;
  for (int64_t call = 1; call <= 20; ++call) {
    Start({}, {.tf32 = true, .deterministic = true});
    MakeNet();
    simulated_gpu::FailCall(Api::kCudnn, call, CUDNN_STATUS_NOT_SUPPORTED);
    bool ok = true;
    for (int s = 0; s < 3; ++s) ok = ok && Step().ok();
    if (ok) ++went_well;
  }
  EXPECT_EQ(went_well, 2);
}

TEST_F(CudaFailureTest, NothingIsLeftBehind) {
  MakeNet();
  for (int s = 0; s < 3; ++s) ASSERT_TRUE(Step().ok());
  EXPECT_GT(simulated_gpu::BytesInUse(), 0u);
  End();
  EXPECT_EQ(simulated_gpu::BytesInUse(), 0u);
}

}  // namespace
}  // namespace kumo
