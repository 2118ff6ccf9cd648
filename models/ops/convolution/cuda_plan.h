// Plan of one convolution by cuDNN for one batch size: descriptors, and an algorithm for forward,
// for the gradient of the input and for the gradient of the filter. All algorithms are measured
// once on the arrays of the first pass, and the fastest is kept; so the first pass must not be
// recorded. With network.deterministic nothing is measured: the first of cuDNN's own guesses that
// repeats its bits and runs is taken, which depends only on the shapes and the kind of GPU.
//
// The filter is outputs x channels of a group x kernel, or, with 16-bit activations, outputs x
// kernel x channels of a group in their number type.
//
// Owned by an op, used by its caller; not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "models/backend/cuda/tensors.h"
#include "models/backend/op.h"

namespace kumo::cuda {

class ConvolutionPlan {
 public:
  ConvolutionPlan(CudaEngine& engine, const ConvolutionSpec& spec, int batch);

  void Forward(const void* input, const void* filter, void* output);
  void FilterGradient(const void* input, const void* grad_output, void* filter_gradient);
  void InputGradient(const void* filter, const void* grad_output, void* grad_input);

 private:
  using FilterDescriptor = Handle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
  using ConvolutionDescriptor =
      Handle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

  // An algorithm goes with the arithmetic that it was measured with.
  template <typename Algorithm>
  struct Choice {
    Algorithm algorithm;
    cudnnMathType_t math;
  };
  // One of the candidates that `measure`, given scratch memory, or `guess` name, the best first;
  // each returns whether cuDNN could say. A guess is tried by `call`, which is given the algorithm.
  // None when something has failed.
  template <typename Candidate, typename Measure, typename Guess, typename Call>
  auto Choose(const Measure& measure, const Guess& guess, const Call& call)
      -> std::optional<Choice<decltype(Candidate::algo)>>;
  // Makes the call of cuDNN's function `name`.
  template <typename Algorithm, typename Call>
  void Run(const Choice<Algorithm>& choice, const char* name, const Call& call);
  void SetMath(cudnnMathType_t math);

  static constexpr int64_t kMostWorkspace = int64_t{512} << 20;
  static constexpr int kCandidates = 24;  // algorithms times arithmetics

  CudaEngine& engine_;
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
