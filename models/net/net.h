// Net: a network ready to train, as a graph on one backend with the memory for one minibatch.
//
// Weights and gradients are two flat vectors of one ParameterLayout in the backend's memory. They
// belong to the caller (a worker's arenas); the net holds views into them. Steps are queued on the
// backend, and their losses are summed there, so that nobody waits for a step. Not thread-safe: one
// caller at a time. On the CPU a step's result is the same bits in every process on one kind of
// CPU, for a given number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "models/backend/backend.h"
#include "models/graph/graph.h"
#include "models/graph/matrices.h"
#include "models/net/execution.h"
#include "models/tensor/tensor.h"
#include "proto/model.pb.h"

namespace kumo {

class Net {
 public:
  // A net for minibatches of up to `max_batch` samples, on a backend that outlives it.
  // InvalidArgument as PlanNetwork, and for max_batch below 1; the backend's failure if its memory
  // does not suffice.
  static Result<std::unique_ptr<Net>> Make(const model::Network& network, int max_batch,
                                           Backend* backend);

  const Graph& graph() const { return graph_; }  // as the file has it
  const std::string& name() const { return graph_.name; }
  // Shape of the first input.
  const Shape& input() const { return graph_.values[0].shape; }
  // The first target of the last loss lies in [0, classes()); 0: it is numbers.
  int64_t classes() const { return graph_.target().classes; }
  // The layer whose output the last loss takes first: the scores of the classes.
  const std::string& scores_layer() const;
  // Tensors in the order of ParameterLayout::Make.
  std::vector<TensorSpec> tensors() const { return graph_.tensors(); }
  std::vector<MatrixTensor> matrices() const { return MatricesOf(graph_); }

  // Fills the whole vector: tensors by their initialisers, gaps with zeros. FailedPrecondition when
  // the layout is another network's or the span has another length than the layout.
  Status InitialWeights(uint64_t seed, const ParameterLayout& layout,
                        std::span<float> weights) const;

  // From now on the net reads its weights (and keeps running statistics) in `weights` and writes
  // gradients to `gradients`: vectors of the layout in the device's memory, borrowed until the next
  // Bind or the net's end, that may change between calls. gradients = null: the net is used and
  // not trained, and its weights stay as they are until the next Bind. FailedPrecondition when the
  // layout is another network's.
  Status Bind(const ParameterLayout& layout, float* weights, float* gradients);

  // The samples' fields that the network takes: its inputs, in their order, and the targets of its
  // losses. An input of bytes takes any numbers. The first extent of a list is 0: any length.
  Fields takes() const;
  // From now on samples have these fields: inputs and targets are taken, others passed over. Bytes
  // become inputs by the formula of their field in `pixels`, whose mean is empty or one of the
  // field's size, and whose scales are none or one for each channel; without a formula they are
  // these numbers. FailedPrecondition if a field is missing or has another shape or type than the
  // network takes, or another size than its formula. A target of classes may be bytes (a mask), or,
  // if Target::shares, a share of each class (float32, classes x its extents). To be called before
  // the first step: a device may record the address of targets.
  Status Connect(const Fields& fields, std::span<const PixelFormula> pixels);
  // Loads the minibatch of the next Train or Evaluate. Batches may differ in size. InvalidArgument,
  // before anything is changed, if the batch's size, a target or an integer is out of range or a
  // field or list has another length. Requires Connect.
  Status Load(const SampleBatch& batch);
  // Queues the loaded minibatch forward and backward, as the step that the backend was told of.
  // Overwrites the gradients with those of the minibatch's mean loss; the gradients vector is not
  // touched in gaps, statistics and tensors that are not trained. Calls on_stage(s) when the
  // gradients of gradient_stages()[s] are queued. Requires Bind with gradients.
  void Train(const std::function<void(int)>& on_stage = nullptr);
  // Ranges of tensors() whose gradients are computed together, in the order of computation: the
  // last layer's first.
  const std::vector<Range>& gradient_stages() const { return execution_->stages(); }
  // Forward pass as in use: no dropout, running statistics; of the rest only the sums change.
  void Evaluate();
  // The same pass for LossInputs alone: the sums do not change.
  void Forward();
  // Outputs of a sample, for people; scores are classes x positions.
  const std::vector<Output>& outputs() const { return graph_.outputs; }
  const Shape& output_shape(int output) const {
    return graph_.values[graph_.outputs[output].value].shape;
  }
  // Forward pass as in use, which reads an output: batch x output_shape(output), sample by sample.
  // Returns the backend's failure. Loaded targets are ignored. Requires a span of that length.
  Status Predict(int output, std::span<float> numbers);
  // The inputs of the last loss for the loaded minibatch, after Train, Evaluate or Forward: of
  // each, batch x its shape. Waits for them. Returns the backend's failure.
  Result<std::vector<std::vector<float>>> LossInputs();
  // The last loss, if the network is a detector; else null.
  const MultiboxSpec* detector() const { return graph_.detector(); }
  // Sums of Train and Evaluate since the last call, without precisions; waits for them. Returns the
  // backend's failure.
  Result<std::vector<double>> TakeSums();
  // Metrics of these sums, over samples.
  const MetricList& metrics() const { return graph_.metrics; }

  // Sets a function that is called for each op before it is queued (see Execution::Watch), for
  // profiles.
  void Watch(Execution::Watcher watcher) { execution_->Watch(std::move(watcher)); }

  // A table of layers, shapes, parameters, products and memory, for people. Its lines begin with
  // two blanks and have at most `columns`; 0: no limit.
  std::string Describe(int columns) const;

 private:
  Net(Graph graph, int max_batch, Backend* backend)
      : graph_(std::move(graph)), max_batch_(max_batch), backend_(backend) {}
  // A field that is taken, and its place among the samples' fields. Targets follow the inputs.
  struct Taken {
    Field field;
    int place = 0;
  };
  Status CheckLayout(const ParameterLayout& layout) const;
  // The loaded minibatch's forward pass as in use.
  void UseForward();
  // The field `wanted` among `fields`.
  Result<Taken> Take(const Fields& fields, const Field& wanted, const Target* target) const;
  Status CheckProbabilities(const Field& field, std::span<const std::byte> bytes,
                            const std::string& what) const;
  // target: null for an input.
  Status CheckIntegers(const Field& field, std::span<const std::byte> bytes,
                       std::span<const int32_t> counts, int64_t below, const Target* target,
                       const std::string& what) const;
  // The minibatch's field t of taken_, checked; bytes of a target become integers in widened_ or
  // numbers in scaled_.
  Result<std::span<const std::byte>> CheckedField(const SampleBatch& batch, size_t t);
  const Target* TargetOf(size_t t) const {
    return t < graph_.inputs.size() ? nullptr : &graph_.targets[t - graph_.inputs.size()];
  }
  bool AreShares(const Target& target, const Field& field) const {
    return target.classes > 0 && field.type == NumberType::kFloat32;
  }
  void MakeTargets();

  const Graph graph_;  // as the file has it
  const int max_batch_;
  Backend* const backend_;
  std::unique_ptr<Execution> execution_;
  bool bound_ = false;
  bool trains_ = false;  // gradients are bound
  int batch_ = 0;        // samples that are loaded
  std::vector<Taken> taken_;
  // For the call of the loader: a batch's fields, followed by the lengths of its lists.
  std::vector<std::span<const std::byte>> loaded_;
  std::vector<std::vector<int32_t>> widened_;  // by taken field
  std::vector<std::vector<float>> scaled_;     // likewise
  std::vector<PixelFormula> formulas_;         // likewise
  std::unique_ptr<InputLoader> loader_;
  // On the device, by target.
  std::vector<DeviceArray<std::byte>> target_values_;
  std::vector<DeviceArray<int32_t>> target_counts_;  // empty for a target that is no list
  std::vector<TargetArray> targets_;
  DeviceArray<double> sums_;
};

}  // namespace kumo
