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
#include "models/graph/execution.h"
#include "models/graph/graph.h"
#include "models/graph/matrices.h"
#include "models/tensor.h"
#include "proto/model.pb.h"

namespace kumo {

class Net {
 public:
  // A net for minibatches of up to `max_batch` samples, on a backend that outlives it.
  // InvalidArgument as PlanNetwork, and for max_batch below 1; the backend's failure if its memory
  // does not suffice.
  static Result<std::unique_ptr<Net>> Make(const model::Network& network, int max_batch,
                                           Backend* backend);

  const std::string& name() const { return graph_.name; }
  // Shape of the first input.
  const Shape& input() const { return graph_.values[0].shape; }
  // Labels lie in [0, classes()); 0: they are numbers.
  int64_t classes() const { return graph_.label.classes; }
  // The layer whose output the last loss takes: the scores of the classes.
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
  // Bind or the net's end, that may change between calls. FailedPrecondition when the layout is
  // another network's.
  Status Bind(const ParameterLayout& layout, float* weights, float* gradients);

  // The samples' fields that the network takes: its inputs, in their order, and the label. An input
  // of bytes takes any numbers.
  Fields takes() const;
  // From now on samples have these fields: the inputs and the label are taken, others passed over.
  // An image in bytes becomes inputs by `pixels`, whose mean is empty or one of the image's size,
  // and whose scales are none or one for each channel. FailedPrecondition if a field is missing or
  // has another shape or type than the network takes. If labels are classes, a share of each class
  // (float32, classes x the label's extents) is accepted too. To be called before the first step: a
  // device may record the address of labels.
  Status Connect(const Fields& fields, const PixelFormula& pixels);
  // Loads the minibatch of the next Train or Evaluate. Batches may differ in size. InvalidArgument,
  // before anything is changed, if the batch's size, a label or an integer is out of range or a
  // field has another length. Requires Connect.
  Status Load(const SampleBatch& batch);
  // Queues the loaded minibatch forward and backward, as the step that the backend was told of.
  // Overwrites the gradients with those of the minibatch's mean loss; the gradients vector is not
  // touched in gaps, statistics and tensors that are not trained. Calls on_stage(s) when the
  // gradients of gradient_stages()[s] are queued. Requires Bind.
  void Train(const std::function<void(int)>& on_stage = nullptr);
  // Ranges of tensors() whose gradients are computed together, in the order of computation: the
  // last layer's first.
  const std::vector<Range>& gradient_stages() const { return execution_->stages(); }
  // Forward pass as in use: no dropout, running statistics; only the sums change.
  void Evaluate();
  // Outputs of a sample, for people; scores are classes x positions.
  const std::vector<Output>& outputs() const { return graph_.outputs; }
  const Shape& output_shape(int output) const {
    return graph_.values[graph_.outputs[output].value].shape;
  }
  // Forward pass as in use, which reads an output: batch x output_shape(output), sample by sample.
  // Returns the backend's failure. Loaded labels are ignored. Requires a span of that length.
  Status Predict(int output, std::span<float> numbers);
  // Sums of Train and Evaluate since the last call; waits for them. Returns the backend's failure.
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
  Status CheckLayout(const ParameterLayout& layout) const;
  bool AreShares(const Field& label) const;
  Status CheckShares(const SampleBatch& batch, int place) const;
  Status CheckIntegers(const SampleBatch& batch, int place, int64_t below,
                       const std::string& what) const;

  const Graph graph_;  // as the file has it
  const int max_batch_;
  Backend* const backend_;
  std::unique_ptr<Execution> execution_;
  bool bound_ = false;
  int batch_ = 0;  // samples that are loaded
  // The fields of the samples that are taken, their places among the samples' fields, and the
  // loader.
  Fields fields_;
  std::vector<int> taken_;
  std::vector<std::span<const std::byte>> loaded_;  // a batch's fields, for the call
  std::unique_ptr<InputLoader> loader_;
  DeviceArray<std::byte> labels_;
  DeviceArray<double> sums_;
};

}  // namespace kumo
