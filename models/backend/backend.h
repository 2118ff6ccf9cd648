// A device: its memory, what it can do with whole arenas, and the ops of a net's layers.
//
// A worker's vectors (weights, gradients, residuals) are plain arrays in the device's memory, so
// that a step never leaves it; what goes over the network is coded there. Activations and their
// gradients are void*: number type and layout are the device's own (the CPU: samples in the vector
// lanes, see cpu/layout.h; a GPU: 16 bits, channels last, where network.precision says so), so
// nobody but the backend looks into them: inputs go in as LoadInputs or the device makes them of
// bytes, and what comes out are sums. No header here names a library; backend/cpu/ and its twins
// do.
//
// Work is queued, and done in order: what a call writes to the device may be used by the next call,
// and is known to the host after Read or Wait. A device that fails does nothing any more; Read and
// Wait say why.
//
// A Backend outlives its arrays and ops. None is thread-safe: one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/codec/codec.h"
#include "common/job/optimiser/optimiser.h"
#include "common/job/parameter_layout.h"
#include "common/job/pixels.h"
#include "models/backend/device_array.h"
#include "models/op_spec.h"
#include "models/tensor.h"

namespace kumo {

// The numbers of activations, their gradients, the operands of products and the gradients of
// convolutions' filters as they come out; everything else is float32.
enum class Precision { kFp32, kBf16, kFp16 };

// One minibatch's way through an op.
struct Pass {
  int batch = 0;  // samples, at most the max_batch the op was made for
  bool training = false;
};

// What changes from one training step to the next.
struct StepParameters {
  StepStreams streams;
  const Optimiser* optimiser = nullptr;  // the local one, borrowed while steps run; null: none
  // The optimiser's, for weights that are decayed and for those that are not.
  StepInfo decayed;
  StepInfo undecayed;
  float clip_norm = 0;  // most that the gradients' L2 norm may be; 0: any
};

// One node's arithmetic. What Backward needs from Forward beyond inputs and outputs (masks, the
// places of maxima) the op keeps itself; so Backward follows the Forward of the same Pass. Arrays
// are in the order of the node's values.
class Op {
 public:
  virtual ~Op() = default;

  // The node's tensors, in the order of its declaration; borrowed until the next Bind. Requires
  // as many as the spec says.
  virtual void Bind(std::span<float* const> weights, std::span<float* const> gradients);
  virtual void Forward(const Pass& pass, std::span<const void* const> inputs,
                       std::span<void* const> outputs) = 0;
  // Overwrites the parameters' gradients and those of grad_inputs that are not null.
  struct Gradients {
    std::span<const void* const> inputs;   // as in Forward; empty where reads_input() is false
    std::span<const void* const> outputs;  // likewise, of reads_output()
    std::span<const void* const> grad_outputs;
    std::span<void* const> grad_inputs;
  };
  virtual void Backward(const Pass& pass, const Gradients& arrays) = 0;

  // Whether outputs[0] may be inputs[0], and grad_inputs[0] grad_outputs[0].
  virtual bool can_run_in_place() const { return false; }
  // Whether Backward reads the outputs: then nobody may overwrite them.
  virtual bool reads_output() const { return false; }
  // Whether Backward reads the inputs.
  virtual bool reads_input() const { return false; }
  // Whether each input's gradient is the output's, as it is; then Backward is not called.
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
  // input and output are null where the op does not read them, grad_input where nobody needs it.
  virtual void BackwardArray(const Pass& pass, const void* input, const void* output,
                             const void* grad_output, void* grad_input) = 0;
};

// What a backend answers for an op that it has not.
Status LacksOp(const char* backend, const char* op);

// A PixelFormula in a device's memory; see Backend::KeepFormula.
class DeviceFormula {
 public:
  virtual ~DeviceFormula() = default;
};

// A data set in a device's memory; see Backend::KeepSamples.
class DeviceSamples {
 public:
  virtual ~DeviceSamples() = default;
  virtual int64_t bytes() const = 0;
};

// The end of a net.
class LossOp {
 public:
  virtual ~LossOp() = default;
  // Adds the losses of `batch` samples, whose labels are in range, to *sums. grad_scores, unless
  // null, becomes the gradient of the mean loss, times the device's loss scale (see
  // Backend::MeasureGradients).
  virtual void Run(int batch, const void* scores, const int32_t* labels, void* grad_scores,
                   StepResult* sums) = 0;
};

class Backend : public DeviceMemory {
 public:
  virtual std::string name() const = 0;

  // --- Memory: arrays of it are DeviceArray. Where there is not enough, Wait says who needed how
  // much.

  // Copies from the host, which may change `from` as soon as the call returns.
  virtual void Write(const void* from, size_t bytes, void* to) = 0;
  // Copies to the host when everything queued before is done. The device's failure.
  virtual Status Read(const void* from, size_t bytes, void* to) = 0;
  // Copies within the device.
  virtual void Copy(const void* from, size_t bytes, void* to) = 0;
  virtual void Zero(void* memory, size_t bytes) = 0;
  // What it is used for, for people: "activations 51.2 MB, the weights 1.7 MB".
  virtual std::string DescribeMemory() const = 0;
  // Waits until everything queued is done. The first failure: ResourceExhausted, or Internal naming
  // the call and the layer.
  virtual Status Wait() = 0;

  // --- Data

  // The formula by which the device makes inputs of bytes (common/job/pixels.h), for images of
  // `shape`; null where that is the host's to do, for LoadInputs. Requires formula.mean to be empty
  // or of shape.size().
  virtual std::unique_ptr<DeviceFormula> KeepFormula(const Shape& shape,
                                                     const PixelFormula& formula) = 0;
  // A copy of a data set of such images, one byte a pixel, so that a minibatch costs no more than
  // its indices and windows. Null where the device makes no inputs, or has no room that leaves
  // `reserve` bytes to arrays that are to come.
  virtual std::unique_ptr<DeviceSamples> KeepSamples(std::span<const uint8_t> pixels,
                                                     std::span<const uint8_t> labels,
                                                     int64_t reserve) = 0;
  // A minibatch of bytes to inputs in the device's layout, and its labels, by what KeepFormula
  // made. The bytes may change as soon as it returns.
  virtual void LoadPixels(const DeviceFormula& formula, const PixelBatch& batch, void* inputs,
                          int32_t* labels) = 0;
  // The same of what KeepSamples made. Requires indices of samples there, and as many windows or
  // none.
  virtual void LoadSamples(const DeviceFormula& formula, const DeviceSamples& samples,
                           std::span<const int64_t> indices, std::span<const Window> windows,
                           void* inputs, int32_t* labels) = 0;

  // --- Whole arenas

  // `to` becomes n numbers from their code, in host memory, which may change as soon as it returns.
  virtual void Decode(const Codec& codec, std::span<const std::byte> code, int64_t n,
                      float* to) = 0;
  // Codec::EncodeUpTo of x, or of x - minus where that is not null. `residual` is null where there
  // is no error feedback.
  struct Encoding {
    const Codec* codec = nullptr;
    const float* x = nullptr;
    const float* minus = nullptr;
    float* residual = nullptr;
    int64_t n = 0;
    float most = std::numeric_limits<float>::max();
    std::span<std::byte> code;  // in host memory, EncodedBytes(n) of it
    int64_t first_bad = -1;     // what EncodeUpTo returns
  };
  // A contribution, or chunks of one: codes and first_bad are there after Wait, until which
  // `encodings` stay where they are. Fastest where codes lie one behind the other in memory of
  // MakeCode.
  virtual void Encode(std::span<Encoding> encodings) = 0;
  // The same of numbers that the next Repeat's work has made when it comes to Mark(mark), and does
  // not change any more: they are coded beside what it queues after that. `done` is called when
  // codes and first_bad are there, by the caller's thread within Repeat, Read or Wait, and never
  // where the device has failed; no call of this object is made in it. Requires that the work marks
  // that, and one call for each mark.
  virtual void EncodeAt(int mark, std::span<Encoding> encodings, std::function<void()> done) = 0;
  // To be called within Repeat's work: EncodeAt(mark, ...) waits for what was queued so far.
  virtual void Mark(int mark) = 0;
  // Host memory that Encode writes into best; at least `bytes` long.
  virtual std::shared_ptr<std::byte> MakeCode(size_t bytes) = 0;
  // Adds n numbers to others.
  virtual void AddTo(const float* from, int64_t n, float* to) = 0;
  // To be called when a step's n trained gradients are there: works out the factor that
  // OptimiserStep and ScaleGradients multiply them with. It is 1 but for
  // - StepParameters::clip_norm: min(1, clip_norm / their L2 norm);
  // - the loss scale of fp16 activations, whose small gradients would be 0: losses are multiplied
  //   by it, gradients divided. It is halved when a gradient has become infinite, and that step
  //   left out (factor 0: OptimiserStep moves nothing, scaled gradients are 0); doubled after 2000
  //   good steps (Micikevicius et al. 2018, Mixed Precision Training).
  virtual void MeasureGradients(const float* gradients, int64_t n) = 0;
  // Multiplies them by the factor, where it is not 1.
  virtual void ScaleGradients(float* gradients, int64_t n) = 0;
  // One step of n weights of a segment in place, by the current step's optimiser and that factor.
  // `slots` as Optimiser::Step has them.
  virtual void OptimiserStep(Segment segment, const float* gradient, int64_t n, float* weights,
                             float* const* slots) = 0;

  // --- Steps

  // Sets what the steps from now on are done with.
  virtual void SetStep(const StepParameters& step) = 0;
  // Does `work`, which queues a step. For the same key it is always the same work on the same
  // arrays with the same marks, but for what SetStep sets: a device may record it once and then
  // repeat what it has recorded.
  struct StepKey {
    int batch = 0;
    bool optimises = false;
    const void* state =
        nullptr;  // what else tells works apart: an array that only one of them uses
    auto operator<=>(const StepKey&) const = default;
  };
  virtual void Repeat(const StepKey& key, const std::function<void()>& work) = 0;
  // Failures from now on name this layer, for which ops are called; the name is borrowed until the
  // next one. Null: no layer.
  virtual void SetPlace(const std::string* place) = 0;

  // --- Layers

  // The length of an activation array of `batch` samples.
  virtual int64_t ActivationBytes(const Shape& shape, int batch) const = 0;
  // Host numbers (batch x channels x height x width) to the device's layout.
  virtual void LoadInputs(const Shape& shape, int batch, const float* from, void* to) = 0;
  // The device's layout to host numbers; for tests and for who wants to look.
  virtual void StoreOutputs(const Shape& shape, int batch, const void* from, float* to) = 0;

  // Whether specs may name this activation, to be applied to the op's result in the same pass.
  virtual bool FusesActivation(Activation activation) const = 0;
  // Whether a FlattenSpec's numbers lie otherwise than a vector's.
  virtual bool FlatteningMoves(const Shape& shape) const = 0;
  // InvalidArgument where the backend has no such op.
  virtual Result<std::unique_ptr<Op>> MakeOp(const OpSpec& spec, int max_batch) = 0;
  virtual Result<std::unique_ptr<LossOp>> MakeLoss(const LossSpec& spec, int max_batch) = 0;
};

}  // namespace kumo
