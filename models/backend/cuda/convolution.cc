// Convolutions by cuDNN, with the max pooling of their output where the net asks for it.
//
// For each batch size the three algorithms (forward, gradient of the input, of the weights) are
// found by measuring those that there are on the arrays of the first pass; so that pass is the one
// that must not be recorded.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"
#include "models/backend/cuda/pooling.h"
#include "models/backend/cuda/tensors.h"

namespace kumo::cuda {
namespace {

using FilterDescriptor = Handle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Handle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

// What an algorithm may use while it is measured; the one that is chosen is what is kept.
constexpr size_t kMostWorkspace = size_t{512} << 20;
constexpr int kCandidates = 16;  // each algorithm may come by two kinds of mathematics

class Convolution final : public Op {
 public:
  Convolution(Engine& engine, const ConvolutionSpec& spec, const std::optional<PoolingSpec>& pool,
              int max_batch)
      : engine_(engine), spec_(spec) {
    KUMO_CUDA(engine, cudnnCreateFilterDescriptor(filter_.receive()));
    KUMO_CUDA(engine,
              cudnnSetFilter4dDescriptor(filter_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                         spec.outputs, static_cast<int>(spec.input.channels),
                                         spec.kernel_height, spec.kernel_width));
    KUMO_CUDA(engine, cudnnCreateConvolutionDescriptor(convolution_.receive()));
    KUMO_CUDA(engine, cudnnSetConvolution2dDescriptor(
                          convolution_.get(), spec.pad, spec.pad, spec.stride, spec.stride,
                          spec.dilation, spec.dilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    if (spec.bias) bias_tensor_ = Describe(engine, {spec.outputs}, 1);
    if (pool) {
      pool_.emplace(engine, *pool, kMaxPooling);
      const int64_t size = spec.output().size() * max_batch;
      convolved_ = Array<float>(engine, size, "a convolution's values before pooling");
      grad_convolved_ = Array<float>(engine, size, "their gradients");
    }
  }

  bool reads_input() const override { return true; }
  bool reads_output() const override { return pool_.has_value(); }
  int64_t bytes() const override { return convolved_.bytes() + grad_convolved_.bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), spec_.bias ? 2u : 1u);
    weight_ = weights[0];
    weight_gradient_ = gradients[0];
    bias_ = spec_.bias ? weights[1] : nullptr;
    bias_gradient_ = spec_.bias ? gradients[1] : nullptr;
  }

  void Forward(const Pass& pass, const float* input, float* output) override {
    float* const convolved = pool_ ? convolved_.data() : output;
    Plan& plan = Of(pass.batch);
    if (!plan.forward) ChooseForward(input, convolved, &plan);
    if (!engine_.ok()) return;
    const float one = 1.0f;
    const float zero = 0.0f;
    UseMath(plan.forward->math);
    KUMO_CUDA(engine_, cudnnConvolutionForward(
                           engine_.cudnn(), &one, plan.input.get(), input, filter_.get(), weight_,
                           convolution_.get(), plan.forward->algorithm, engine_.workspace(),
                           engine_.workspace_bytes(), &zero, plan.output.get(), convolved));
    if (bias_ != nullptr) {
      KUMO_CUDA(engine_, cudnnAddTensor(engine_.cudnn(), &one, bias_tensor_.get(), bias_, &one,
                                        plan.output.get(), convolved));
    }
    if (pool_) pool_->Forward(pass.batch, convolved, output);
  }

  void Backward(const Pass& pass, const float* input, const float* output, const float* grad_output,
                float* grad_input) override {
    const float* grad = grad_output;
    if (pool_) {
      pool_->Backward(pass.batch, convolved_.data(), output, grad_output, grad_convolved_.data());
      grad = grad_convolved_.data();
    }
    Plan& plan = Of(pass.batch);
    if (!plan.weights) ChooseForWeights(input, grad, &plan);
    if (grad_input != nullptr && !plan.inputs) ChooseForInputs(grad, grad_input, &plan);
    if (!engine_.ok()) return;
    const float one = 1.0f;
    const float zero = 0.0f;
    UseMath(plan.weights->math);
    KUMO_CUDA(engine_, cudnnConvolutionBackwardFilter(
                           engine_.cudnn(), &one, plan.input.get(), input, plan.output.get(), grad,
                           convolution_.get(), plan.weights->algorithm, engine_.workspace(),
                           engine_.workspace_bytes(), &zero, filter_.get(), weight_gradient_));
    if (bias_gradient_ != nullptr) {
      KUMO_CUDA(engine_,
                cudnnConvolutionBackwardBias(engine_.cudnn(), &one, plan.output.get(), grad, &zero,
                                             bias_tensor_.get(), bias_gradient_));
    }
    if (grad_input == nullptr) return;
    UseMath(plan.inputs->math);
    KUMO_CUDA(engine_, cudnnConvolutionBackwardData(
                           engine_.cudnn(), &one, filter_.get(), weight_, plan.output.get(), grad,
                           convolution_.get(), plan.inputs->algorithm, engine_.workspace(),
                           engine_.workspace_bytes(), &zero, plan.input.get(), grad_input));
  }

 private:
  // An algorithm, and the mathematics that it was measured with: it may need another workspace, and
  // be slower, with any other.
  template <typename Algorithm>
  struct Choice {
    Algorithm algorithm;
    cudnnMathType_t math;
  };
  // For one batch size.
  struct Plan {
    TensorDescriptor input;
    TensorDescriptor output;  // of the convolution alone
    std::optional<Choice<cudnnConvolutionFwdAlgo_t>> forward;
    std::optional<Choice<cudnnConvolutionBwdFilterAlgo_t>> weights;
    std::optional<Choice<cudnnConvolutionBwdDataAlgo_t>> inputs;
  };

  Plan& Of(int batch) {
    const auto [entry, fresh] = plans_.try_emplace(batch);
    if (fresh) {
      entry->second.input = Describe(engine_, spec_.input, batch);
      entry->second.output = Describe(engine_, spec_.output(), batch);
    }
    return entry->second;
  }

  // The fastest of those that ran, and are the same bits each time where that is wanted.
  template <typename Measured>
  auto Fastest(const std::vector<Measured>& measured, int count)
      -> std::optional<Choice<decltype(Measured::algo)>> {
    for (int i = 0; i < count; ++i) {
      const Measured& candidate = measured[i];
      const bool repeats = candidate.determinism == CUDNN_DETERMINISTIC;
      if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
      if (engine_.options().deterministic && !repeats) continue;
      engine_.ReserveWorkspace(candidate.memory);
      return {{candidate.algo, candidate.mathType}};
    }
    engine_.Remember(FailedPrecondition("cuDNN has no algorithm for a convolution of " +
                                        spec_.input.ToString()));
    return std::nullopt;
  }

  void UseMath(cudnnMathType_t math) {
    KUMO_CUDA(engine_, cudnnSetConvolutionMathType(convolution_.get(), math));
  }
  void AllowAllMath() { UseMath(engine_.options().tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH); }

  // Scratch for what is measured; what is in the result afterwards is the measured one's. At most
  // half of what is free, since the workspace of the one that is chosen comes on top.
  Array<std::byte> Scratch() {
    const size_t bytes = std::min(kMostWorkspace, engine_.FreeBytes() / 2);
    return {engine_, static_cast<int64_t>(bytes), "measuring convolutions"};
  }

  void ChooseForward(const float* input, float* output, Plan* plan) {
    std::vector<cudnnConvolutionFwdAlgoPerf_t> measured(kCandidates);
    int count = 0;
    const Array<std::byte> scratch = Scratch();
    AllowAllMath();
    if (KUMO_CUDA(engine_, cudnnFindConvolutionForwardAlgorithmEx(
                               engine_.cudnn(), plan->input.get(), input, filter_.get(), weight_,
                               convolution_.get(), plan->output.get(), output, kCandidates, &count,
                               measured.data(), scratch.data(), scratch.size()))) {
      plan->forward = Fastest(measured, count);
    }
  }
  void ChooseForWeights(const float* input, const float* grad, Plan* plan) {
    std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> measured(kCandidates);
    int count = 0;
    const Array<std::byte> scratch = Scratch();
    AllowAllMath();
    if (KUMO_CUDA(engine_, cudnnFindConvolutionBackwardFilterAlgorithmEx(
                               engine_.cudnn(), plan->input.get(), input, plan->output.get(), grad,
                               convolution_.get(), filter_.get(), weight_gradient_, kCandidates,
                               &count, measured.data(), scratch.data(), scratch.size()))) {
      plan->weights = Fastest(measured, count);
    }
  }
  void ChooseForInputs(const float* grad, float* grad_input, Plan* plan) {
    std::vector<cudnnConvolutionBwdDataAlgoPerf_t> measured(kCandidates);
    int count = 0;
    const Array<std::byte> scratch = Scratch();
    AllowAllMath();
    if (KUMO_CUDA(engine_, cudnnFindConvolutionBackwardDataAlgorithmEx(
                               engine_.cudnn(), filter_.get(), weight_, plan->output.get(), grad,
                               convolution_.get(), plan->input.get(), grad_input, kCandidates,
                               &count, measured.data(), scratch.data(), scratch.size()))) {
      plan->inputs = Fastest(measured, count);
    }
  }

  Engine& engine_;
  ConvolutionSpec spec_;
  FilterDescriptor filter_;
  ConvolutionDescriptor convolution_;
  TensorDescriptor bias_tensor_;
  std::optional<Pooling> pool_;
  Array<float> convolved_;       // before pooling
  Array<float> grad_convolved_;  // likewise
  std::map<int, Plan> plans_;    // by batch size
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeConvolution(Engine& engine, const ConvolutionSpec& spec,
                                    const std::optional<PoolingSpec>& pool, int max_batch) {
  return std::make_unique<Convolution>(engine, spec, pool, max_batch);
}

}  // namespace kumo::cuda
