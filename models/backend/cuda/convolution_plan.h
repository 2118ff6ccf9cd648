// One convolution by cuDNN for one batch size: descriptors, and for forward, the gradient of the
// input and that of the filter the fastest algorithm, found once by measuring all that there are on
// the arrays of the first pass. So that pass is the one that must not be recorded.
//
// The filter is outputs x channels x kernel, or, with 16-bit activations, outputs x kernel x
// channels in their number type.
#pragma once

#include <optional>
#include <string>

#include "models/backend/backend.h"
#include "models/backend/cuda/tensors.h"

namespace kumo::cuda {

class ConvolutionPlan {
 public:
  ConvolutionPlan(Engine& engine, const ConvolutionSpec& spec, int batch);

  void Forward(const void* input, const void* filter, void* output);
  void FilterGradient(const void* input, const void* grad_output, void* filter_gradient);
  void InputGradient(const void* filter, const void* grad_output, void* grad_input);

 private:
  using FilterDescriptor = Handle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
  using ConvolutionDescriptor =
      Handle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

  // Memory for what is measured, which may be more than what is chosen wants.
  Array<std::byte> Scratch();
  // An algorithm goes with the arithmetic that it was measured with.
  template <typename Algorithm>
  struct Choice {
    Algorithm algorithm;
    cudnnMathType_t math;
  };
  // The first of `count` candidates, fastest first, that ran and, where that is wanted, gives the
  // same bits each time.
  template <typename Candidate>
  auto Choose(const Candidate* candidates, int count)
      -> std::optional<Choice<decltype(candidates->algo)>>;
  void SetMath(cudnnMathType_t math);

  static constexpr int64_t kMostWorkspace = int64_t{512} << 20;
  static constexpr int kCandidates = 8;

  Engine& engine_;
  std::string what_;  // for errors
  TensorDescriptor input_;
  TensorDescriptor output_;
  FilterDescriptor filter_;
  ConvolutionDescriptor convolution_;
  std::optional<Choice<cudnnConvolutionFwdAlgo_t>> forward_;
  std::optional<Choice<cudnnConvolutionBwdFilterAlgo_t>> filter_gradient_;
  std::optional<Choice<cudnnConvolutionBwdDataAlgo_t>> input_gradient_;
};

}  // namespace kumo::cuda
