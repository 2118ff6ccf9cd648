// A network ready to train: the layers' ops on one backend, with the memory for one minibatch.
//
// Weights and gradients are two flat vectors of one ParameterLayout that belong to the caller (a
// worker's arenas); the net holds views into them. Not thread-safe: one caller at a time; inside a
// step the backend uses `threads` threads. A step's result is the same bits in every process on
// one kind of CPU, for a given number of threads.
//
// Order of execution. Two rewrites keep the result and save passes over memory: max pooling runs
// before a non-decreasing activation in front of it (max f(x) = f(max x)), and a convolution pools
// its own output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/buffer.h"
#include "common/parameter_layout.h"
#include "common/status.h"
#include "models/backend/backend.h"
#include "models/network.h"
#include "models/tensor.h"

namespace kumo {

struct NetOptions {
  int max_batch = 1;  // samples
  int threads = 1;
};

class Net {
 public:
  // InvalidArgument as PlanNetwork, and for options below 1. The second form takes the backend.
  static Result<std::unique_ptr<Net>> Make(const model::Network& network,
                                           const NetOptions& options);
  static Result<std::unique_ptr<Net>> Make(const model::Network& network, const NetOptions& options,
                                           std::unique_ptr<Backend> backend);

  const std::string& name() const { return plan_.name; }
  const Shape& input() const { return plan_.input; }
  int64_t classes() const { return plan_.loss.classes; }
  // What ParameterLayout::Make takes.
  std::vector<TensorSpec> tensors() const { return plan_.tensors(); }

  // Fills the whole vector: tensors by their initialisers, gaps with zeros. FailedPrecondition when
  // the layout is another network's or the span has another length than the layout.
  Status InitialWeights(uint64_t seed, const ParameterLayout& layout,
                        std::span<float> weights) const;

  // From now on the net reads its weights (and keeps running statistics) in `weights` and writes
  // gradients to `gradients`; both are borrowed until the next Bind or the net's end and may change
  // between calls. Errors as InitialWeights.
  Status Bind(const ParameterLayout& layout, std::span<float> weights, std::span<float> gradients);

  // One minibatch forward and backward. Overwrites the gradients with those of the minibatch's mean
  // loss; the gaps and statistics of the gradients vector are not touched. Batches may differ in
  // size. InvalidArgument, before anything is changed, when the batch's size or a label is out of
  // range or its spans have other lengths. Requires Bind.
  Result<StepResult> TrainStep(const Batch& batch, const StepStreams& streams);
  // Forward as in use: no dropout, running statistics, nothing changed. Errors as TrainStep.
  Result<StepResult> Evaluate(const Batch& batch);

  // A table of layers, shapes, parameters and memory, for people.
  std::string Describe() const;

 private:
  struct Step {
    std::unique_ptr<Op> op;
    Shape input;
    Shape output;
    std::vector<int> tensors;
    bool in_place = false;
  };

  Net() = default;
  void MakeSteps();
  void AllocateActivations();
  Status CheckLayout(const ParameterLayout& layout, size_t length) const;
  Status CheckBatch(const Batch& batch) const;
  // Runs the steps forward and returns the scores.
  const float* Forward(const Batch& batch, const Pass& pass);
  void Backward(const Pass& pass);
  const float* InputOf(size_t step) const;

  NetworkPlan plan_;
  NetOptions options_;
  std::unique_ptr<Backend> backend_;  // outlives the ops
  std::vector<Step> steps_;
  std::unique_ptr<LossOp> loss_;
  size_t first_trained_ = 0;  // steps before it need no gradient
  bool bound_ = false;
  Buffer<float> input_;                 // in the device's layout
  std::vector<Buffer<float>> buffers_;  // activations
  std::vector<float*> outputs_;         // of each step
  Buffer<float> gradients_[2];          // of activations, by turns
};

}  // namespace kumo
