// What a device can compute: a Backend makes one Op for each layer of a net, and the Op runs that
// layer forward and backward on the device's own arrays.
//
// A device keeps activations in a layout of its own (the CPU: samples in the vector lanes, see
// cpu/layout.h), so nobody but the backend looks into them: inputs go in through LoadInputs, and
// what comes out are sums. Parameters and their gradients are plain arrays in the order of the
// tensor's shape. No header here names a library; backend/cpu/ and its twins do.
//
// A Backend outlives its Ops. Neither is thread-safe: one net, one caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/buffer.h"
#include "models/tensor.h"

namespace kumo {

struct PoolingSpec {
  Shape input;
  int kernel = 1;
  int stride = 1;
  int pad = 0;
  Shape output() const;
};

// Parameters: weight [outputs][channels][kernel_height][kernel_width], bias [outputs].
struct ConvolutionSpec {
  Shape input;
  int outputs = 1;
  int kernel_height = 1;
  int kernel_width = 1;
  int stride = 1;
  int pad = 0;
  int dilation = 1;
  bool bias = true;
  Shape output() const;
};

// Parameters: weight [outputs][inputs], bias [outputs].
struct FullyConnectedSpec {
  int64_t inputs = 1;
  int64_t outputs = 1;
  bool bias = true;
};

enum class Activation { kRelu, kTanh, kSigmoid };

struct DropoutSpec {
  Shape shape;
  float ratio = 0;
  int layer = 0;  // place in the network file: tells the streams of two layers apart
};

// Parameters: scale, shift, running mean, running variance, each [channels].
struct BatchNormalisationSpec {
  Shape shape;
  float epsilon = 1e-5f;
  float momentum = 0.9f;
};

// One minibatch's way through an op.
struct Pass {
  int batch = 0;  // samples, at most the max_batch the op was made for
  bool training = false;
  StepStreams streams;
};

// One layer's arithmetic. What Backward needs from Forward beyond input and output (masks, the
// places of maxima) the op keeps itself; so Backward follows the Forward of the same Pass.
class Op {
 public:
  virtual ~Op() = default;

  // The layer's tensors, in the order of its declaration; borrowed until the next Bind. Requires
  // as many as the spec says.
  virtual void Bind(std::span<float* const> weights, std::span<float* const> gradients);
  virtual void Forward(const Pass& pass, const float* input, float* output) = 0;
  // Overwrites the parameters' gradients and, unless it is null, grad_input.
  virtual void Backward(const Pass& pass, const float* input, const float* output,
                        const float* grad_output, float* grad_input) = 0;

  // Whether output may be input, and grad_input grad_output.
  virtual bool can_run_in_place() const { return false; }
  // Whether Backward reads `output`: then nobody may overwrite it.
  virtual bool reads_output() const { return false; }
  // Whether Backward reads `input`.
  virtual bool reads_input() const { return false; }
  // Memory that the op holds, in bytes.
  virtual int64_t bytes() const { return 0; }
};

// The end of a net.
class LossOp {
 public:
  virtual ~LossOp() = default;
  // Of `batch` samples; labels are host memory and in range. grad_scores, unless null, becomes the
  // gradient of the mean loss.
  virtual StepResult Run(int batch, const float* scores, std::span<const int32_t> labels,
                         float* grad_scores) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;

  // Floats of an activation array of `batch` samples.
  virtual int64_t ActivationSize(const Shape& shape, int batch) const = 0;
  // Host numbers (batch x channels x height x width) to the device's layout.
  virtual void LoadInputs(const Shape& shape, int batch, const float* from, float* to) = 0;
  // And back. For tests and for who wants to look.
  virtual void StoreOutputs(const Shape& shape, int batch, const float* from, float* to) = 0;

  // A convolution, and with `pool` the max pooling of its output in the same op.
  virtual std::unique_ptr<Op> MakeConvolution(const ConvolutionSpec& spec,
                                              const std::optional<PoolingSpec>& pool,
                                              int max_batch) = 0;
  virtual std::unique_ptr<Op> MakeFullyConnected(const FullyConnectedSpec& spec, int max_batch) = 0;
  virtual std::unique_ptr<Op> MakeMaxPooling(const PoolingSpec& spec, int max_batch) = 0;
  virtual std::unique_ptr<Op> MakeAveragePooling(const PoolingSpec& spec, int max_batch) = 0;
  virtual std::unique_ptr<Op> MakeActivation(Activation activation, const Shape& shape) = 0;
  virtual std::unique_ptr<Op> MakeDropout(const DropoutSpec& spec, int max_batch) = 0;
  virtual std::unique_ptr<Op> MakeBatchNormalisation(const BatchNormalisationSpec& spec,
                                                     int max_batch) = 0;
  virtual std::unique_ptr<LossOp> MakeSoftmaxCrossEntropy(const Shape& shape, int max_batch) = 0;
};

}  // namespace kumo
