#include "models/ops/convolution/cuda_plan.h"

#include <algorithm>

namespace kumo::cuda {
namespace {

constexpr float kOne = 1.0f;
constexpr float kZero = 0.0f;

// Arithmetics with which algorithms may be measured.
cudnnMathType_t MathOf(const CudaEngine& engine) {
  if (engine.precision() != Precision::kFp32) return CUDNN_TENSOR_OP_MATH;
  return engine.options().tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

// The category of a status: cuDNN's codes have the reason in their last three digits.
bool IsNotSupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(static_cast<int>(status)) == CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(CudaEngine& engine, const ConvolutionSpec& spec, int batch)
    : engine_(engine),
      what_("a convolution of " + std::to_string(batch) + " x " + spec.input.ToString() + " by " +
            std::to_string(spec.outputs) + " of " + std::to_string(spec.kernel_height) + "x" +
            std::to_string(spec.kernel_width) +
            (spec.groups > 1 ? " in " + std::to_string(spec.groups) + " groups" : "")),
      input_(Describe(engine, spec.input, batch)),
      output_(Describe(engine, spec.output(), batch)) {
  KUMO_CUDA(engine, cudnnCreateFilterDescriptor(filter_.receive()));
  KUMO_CUDA(engine,
            cudnnSetFilter4dDescriptor(filter_.get(), TypeOf(engine.precision()), FormatOf(engine),
                                       spec.outputs, static_cast<int>(spec.channels_per_group()),
                                       spec.kernel_height, spec.kernel_width));
  KUMO_CUDA(engine, cudnnCreateConvolutionDescriptor(convolution_.receive()));
  KUMO_CUDA(engine, cudnnSetConvolution2dDescriptor(
                        convolution_.get(), spec.pad, spec.pad, spec.stride, spec.stride,
                        spec.dilation, spec.dilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  if (spec.groups > 1) {
    KUMO_CUDA(engine, cudnnSetConvolutionGroupCount(convolution_.get(), spec.groups));
  }
}

void ConvolutionPlan::SetMath(cudnnMathType_t math) {
  KUMO_CUDA(engine_, cudnnSetConvolutionMathType(convolution_.get(), math));
}

template <typename Candidate, typename Measure, typename Guess, typename Call>
auto ConvolutionPlan::Choose(const Measure& measure, const Guess& guess, const Call& call)
    -> std::optional<Choice<decltype(Candidate::algo)>> {
  const bool deterministic = engine_.options().deterministic;
  Candidate candidates[kCandidates];
  int count = 0;
  SetMath(MathOf(engine_));
  if (deterministic) {
    if (!guess(&count, candidates)) return std::nullopt;
  } else {
    const auto spare = static_cast<int64_t>(engine_.FreeBytes() / 2);
    auto scratch =
        TryArray<std::byte>(engine_, std::min(kMostWorkspace, spare), "measuring convolutions");
    if (!measure(scratch, &count, candidates)) return std::nullopt;
  }
  for (int i = 0; i < count && engine_.ok(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
    if (deterministic && candidate.determinism != CUDNN_DETERMINISTIC) continue;
    if (candidate.memory > static_cast<size_t>(kMostWorkspace)) continue;
    if (engine_.TryReserveWorkspace(candidate.memory)) {
      const Choice<decltype(Candidate::algo)> choice = {candidate.algo, candidate.mathType};
      if (!deterministic) return choice;
      // A guess has not run yet. Every process with such a GPU is refused the same candidates.
      SetMath(choice.math);
      if (!engine_.Ready()) return std::nullopt;
      if (!IsNotSupported(call(choice.algorithm))) return choice;
      continue;
    }
    // Another process, with more room, would take it: other bits.
    if (deterministic) engine_.ReserveWorkspace(candidate.memory);
  }
  engine_.Remember(FailedPrecondition("cuDNN has no algorithm for " + what_ +
                                      ", or none that there is memory for"));
  return std::nullopt;
}

template <typename Algorithm, typename Call>
void ConvolutionPlan::Run(const Choice<Algorithm>& choice, const char* name, const Call& call) {
  SetMath(choice.math);
  if (engine_.Ready()) engine_.Check(call(choice.algorithm), name, __FILE__, __LINE__);
}

void ConvolutionPlan::Forward(const void* input, const void* filter, void* output) {
  const auto call = [&](cudnnConvolutionFwdAlgo_t algorithm) {
    return cudnnConvolutionForward(engine_.cudnn(), &kOne, input_.get(), input, filter_.get(),
                                   filter, convolution_.get(), algorithm, engine_.workspace(),
                                   engine_.workspace_bytes(), &kZero, output_.get(), output);
  };
  if (!forward_) {
    forward_ = Choose<cudnnConvolutionFwdAlgoPerf_t>(
        [&](DeviceArray<std::byte>& scratch, int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
          return KUMO_CUDA(engine_, cudnnFindConvolutionForwardAlgorithmEx(
                                        engine_.cudnn(), input_.get(), input, filter_.get(), filter,
                                        convolution_.get(), output_.get(), output, kCandidates,
                                        count, found, scratch.data(), scratch.size()));
        },
        [&](int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
          return KUMO_CUDA(engine_,
                           cudnnGetConvolutionForwardAlgorithm_v7(
                               engine_.cudnn(), input_.get(), filter_.get(), convolution_.get(),
                               output_.get(), kCandidates, count, found));
        },
        call);
    if (!forward_) return;
  }
  Run(*forward_, "cudnnConvolutionForward", call);
}

void ConvolutionPlan::FilterGradient(const void* input, const void* grad_output,
                                     void* filter_gradient) {
  const auto call = [&](cudnnConvolutionBwdFilterAlgo_t algorithm) {
    return cudnnConvolutionBackwardFilter(engine_.cudnn(), &kOne, input_.get(), input,
                                          output_.get(), grad_output, convolution_.get(), algorithm,
                                          engine_.workspace(), engine_.workspace_bytes(), &kZero,
                                          filter_.get(), filter_gradient);
  };
  if (!filter_gradient_) {
    filter_gradient_ = Choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
        [&](DeviceArray<std::byte>& scratch, int* count,
            cudnnConvolutionBwdFilterAlgoPerf_t* found) {
          return KUMO_CUDA(
              engine_, cudnnFindConvolutionBackwardFilterAlgorithmEx(
                           engine_.cudnn(), input_.get(), input, output_.get(), grad_output,
                           convolution_.get(), filter_.get(), filter_gradient, kCandidates, count,
                           found, scratch.data(), scratch.size()));
        },
        [&](int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
          return KUMO_CUDA(engine_,
                           cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                               engine_.cudnn(), input_.get(), output_.get(), convolution_.get(),
                               filter_.get(), kCandidates, count, found));
        },
        call);
    if (!filter_gradient_) return;
  }
  Run(*filter_gradient_, "cudnnConvolutionBackwardFilter", call);
}

void ConvolutionPlan::InputGradient(const void* filter, const void* grad_output, void* grad_input) {
  const auto call = [&](cudnnConvolutionBwdDataAlgo_t algorithm) {
    return cudnnConvolutionBackwardData(engine_.cudnn(), &kOne, filter_.get(), filter,
                                        output_.get(), grad_output, convolution_.get(), algorithm,
                                        engine_.workspace(), engine_.workspace_bytes(), &kZero,
                                        input_.get(), grad_input);
  };
  if (!input_gradient_) {
    input_gradient_ = Choose<cudnnConvolutionBwdDataAlgoPerf_t>(
        [&](DeviceArray<std::byte>& scratch, int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
          return KUMO_CUDA(engine_, cudnnFindConvolutionBackwardDataAlgorithmEx(
                                        engine_.cudnn(), filter_.get(), filter, output_.get(),
                                        grad_output, convolution_.get(), input_.get(), grad_input,
                                        kCandidates, count, found, scratch.data(), scratch.size()));
        },
        [&](int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
          return KUMO_CUDA(engine_,
                           cudnnGetConvolutionBackwardDataAlgorithm_v7(
                               engine_.cudnn(), filter_.get(), output_.get(), convolution_.get(),
                               input_.get(), kCandidates, count, found));
        },
        call);
    if (!input_gradient_) return;
  }
  Run(*input_gradient_, "cudnnConvolutionBackwardData", call);
}

}  // namespace kumo::cuda
