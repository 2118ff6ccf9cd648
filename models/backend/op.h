// Ops: the arithmetic of a graph's nodes on a device, and the factory that makes ops of specs.
//
// Activations and their gradients are void*, because number type and layout are the device's own
// (the CPU: samples in the vector lanes, see cpu/layout.h; a GPU: 16 bits, channels last, if
// network.precision says so). Only the backend reads them.
//
// An Execution owns the ops and losses of its graph. Not thread-safe: one caller at a time, as for
// the backend (backend.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <glog/logging.h>

#include "common/base/status.h"
#include "models/layers/losses.h"
#include "models/layers/ops.h"
#include "models/tensor/tensor.h"

namespace kumo {

// One minibatch's pass through an op.
struct Pass {
  int batch = 0;  // samples, at most the max_batch the op was made for
  bool training = false;
  // The tensors stay as they are from one Bind to the next, so an op may keep what it made of them.
  bool fixed_tensors = false;
};

// Arithmetic of one node. The op itself keeps all that Backward needs from Forward beyond inputs
// and outputs (masks, places of maxima), so Backward follows the Forward of the same Pass. Arrays
// are in the order of the node's values.
class Op {
 public:
  virtual ~Op() = default;

  // The node's tensors, in the order of its declaration; borrowed until the next Bind. Requires
  // as many as the spec says. The gradients of tensors that are not trained are null: of all
  // tensors of a node, or of its running statistics only.
  virtual void Bind(std::span<float* const> weights, std::span<float* const> gradients);
  virtual void Forward(const Pass& pass, std::span<const void* const> inputs,
                       std::span<void* const> outputs) = 0;
  // Arrays of Backward.
  struct Gradients {
    std::span<const void* const> inputs;   // as in Forward; empty if reads_input() is false
    std::span<const void* const> outputs;  // as in Forward; empty if reads_output() is false
    std::span<const void* const> grad_outputs;
    std::span<void* const> grad_inputs;  // null: nobody needs it
  };
  // Overwrites the gradients of parameters and inputs that are not null.
  virtual void Backward(const Pass& pass, const Gradients& arrays) = 0;

  // Whether outputs[0] may be inputs[0], and grad_inputs[0] grad_outputs[0].
  virtual bool can_run_in_place() const { return false; }
  // Whether Backward reads the outputs: then they must not be overwritten.
  virtual bool reads_output() const { return false; }
  // Whether Backward reads the inputs.
  virtual bool reads_input() const { return false; }
  // Whether each input's gradient is the output's gradient, unchanged; then Backward is not called.
  virtual bool passes_gradient() const { return false; }
  // Memory that the op holds, in bytes.
  virtual int64_t bytes() const { return 0; }
};

// An op of one input and one output.
class UnaryOp : public Op {
 public:
  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) final;
  void Backward(const Pass& pass, const Gradients& arrays) final;

 private:
  virtual void ForwardArray(const Pass& pass, const void* input, void* output) = 0;
  // input and output are null if the op does not read them, grad_input if nobody needs it.
  virtual void BackwardArray(const Pass& pass, const void* input, const void* output,
                             const void* grad_output, void* grad_input) = 0;
};

// Base class of an op whose tensors are a weight and, unless the layer has none, a bias; of a
// normalisation, scale and shift: `class Convolution : public WeightedOp<UnaryOp>`. The one place
// that binds them.
template <typename Base>
class WeightedOp : public Base {
 public:
  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), has_bias_ ? 2u : 1u);
    weight_ = weights[0];
    weight_gradient_ = gradients[0];
    bias_ = has_bias_ ? weights[1] : nullptr;
    bias_gradient_ = has_bias_ ? gradients[1] : nullptr;
  }

 protected:
  explicit WeightedOp(bool has_bias) : has_bias_(has_bias) {}

  // Whether the gradients of the tensors are wanted.
  bool is_trained() const { return weight_gradient_ != nullptr; }

  // Null before Bind; bias_ and bias_gradient_ are null without a bias; the gradients are null if
  // the tensors are not trained.
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;

 private:
  bool has_bias_;
};

// A new op of class T, as a backend's MakeOp returns it.
template <typename T, typename... Arguments>
Result<std::unique_ptr<Op>> NewOp(Arguments&&... arguments) {
  return std::unique_ptr<Op>(std::make_unique<T>(std::forward<Arguments>(arguments)...));
}

// Target of a minibatch, in the device's memory.
struct TargetArray {
  // As the host has them, sample after sample: int32 that are in range, or float32.
  const void* values = nullptr;
  // If it is a list: the entries of each sample (int32), and the room for each sample's entries.
  const int32_t* counts = nullptr;
  int64_t room = 1;
};

// Arrays of a loss, in the order of its inputs and targets.
struct LossArrays {
  std::span<const void* const> inputs;
  std::span<const TargetArray> targets;
  std::span<void* const> grad_inputs;  // empty, or null for an input: nobody needs it

  void* grad_input(int i) const { return grad_inputs.empty() ? nullptr : grad_inputs[i]; }
};

// Loss of a net.
class LossOp {
 public:
  virtual ~LossOp() = default;
  // Adds the losses of `batch` samples to the sums of the plan's metrics. Gradients that are wanted
  // become those of the mean loss, times the spec's weight and the device's loss scale (see
  // ArenaArithmetic::MeasureGradients).
  virtual void Run(int batch, const LossArrays& arrays, double* sums) = 0;
};

// Factory of a backend's ops.
class OpFactory {
 public:
  virtual ~OpFactory() = default;

  // The length of an activation array of `batch` samples.
  virtual int64_t ActivationBytes(const Shape& shape, int batch) const = 0;
  // The device's layout to host numbers (batch x channels x height x width), the reverse of an
  // InputLoader; for outputs and tests.
  virtual void StoreOutputs(const Shape& shape, int batch, const void* from, float* to) = 0;

  // Whether specs may name this activation, to be applied to the op's result in the same pass. A
  // function with a parameter, such as a leaky ReLU with its slope, stays an op.
  virtual bool FusesActivation(Activation activation) const = 0;
  // Whether a ConvolutionSpec like this may have a pooling.
  virtual bool FusesPooling(const ConvolutionSpec& convolution) const = 0;
  // Whether a flattened sample's elements lie in another order than before.
  virtual bool FlatteningMoves(const Shape& shape) const = 0;
  // InvalidArgument if the backend has no such op.
  virtual Result<std::unique_ptr<Op>> MakeOp(const OpSpec& spec, int max_batch) = 0;
  // Allocates the memory that ops share, after all ops of a net are made and before its first step.
  virtual void TakeShared() {}
  virtual Result<std::unique_ptr<LossOp>> MakeLoss(const LossSpec& spec, int max_batch) = 0;
};

}  // namespace kumo
