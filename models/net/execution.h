// Execution of a graph on a backend: the ops of its nodes, the memory of their activations for
// minibatches up to a size, and the passes forward and backward. The graph is rewritten first
// (rewrites/), and memory is shared as step_plan.h says.
//
// The backend outlives the execution. One caller at a time; work is queued on the backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "models/backend/backend.h"
#include "models/graph/graph.h"
#include "models/graph/step_plan.h"

namespace kumo {

class Execution {
 public:
  // Returns the backend's error for an op that it lacks. If memory does not suffice, the backend's
  // Wait returns the failure.
  static Result<std::unique_ptr<Execution>> Make(Graph graph, int max_batch, Backend* backend);

  // From now on a target is a share of each class, or again the index of a class; see
  // SoftmaxCrossEntropySpec. Requires Target::shares. As Make.
  Status TakeShares(int target, bool shares);

  // Tensors of `layout`, which is the graph's, are views into these vectors from now on. gradients:
  // null if nothing is trained.
  void Bind(const ParameterLayout& layout, float* weights, float* gradients);
  // Array of a minibatch's input before Forward; of an integer input int32, sample after sample.
  void* input(int i) { return inputs_[i].data(); }
  void Forward(const Pass& pass);
  // The losses of the minibatch that went forward, added to the sums of their metrics. targets: in
  // the order of the graph's.
  void AddLosses(int batch, std::span<const TargetArray> targets, double* sums);
  // An output of the graph, of the minibatch that went forward: batch x its shape. Waits for it.
  void ReadOutput(int output, int batch, float* to);
  // Input i of the last loss, of the minibatch that went forward: batch x its shape. Waits for it.
  void ReadLossInput(int i, int batch, float* to);
  // The losses, and then backward: overwrites the gradients of all trained tensors, and calls
  // on_stage(s) when those of stages()[s] are queued.
  void Backward(const Pass& pass, std::span<const TargetArray> targets, double* sums,
                const std::function<void(int)>& on_stage);
  // Ranges of tensors whose gradients are made together, in that order: the last node's first.
  const std::vector<Range>& stages() const { return stages_; }

  // Memory on the device, in bytes.
  int64_t bytes() const;

  // Called with the layer of each op and its direction before the op is queued; null: no call.
  using Watcher = std::function<void(const std::string& layer, bool backward)>;
  void Watch(Watcher watcher) { watcher_ = std::move(watcher); }

 private:
  // Gradient of a tensor that several nodes use: a node's gradient is computed aside, and then
  // added to the gradients of the nodes behind it. Never moved, as recorded steps hold its address.
  struct Addition {
    int parameter = 0;
    DeviceArray<float> made;
    float* to = nullptr;
  };
  struct Step {
    Instruction::Kind kind = Instruction::Kind::kForward;
    const std::string* name = nullptr;  // of the layer
    Op* op = nullptr;
    std::vector<void*> inputs;
    std::vector<void*> outputs;
    std::vector<void*> grad_outputs;
    std::vector<void*> grad_inputs;
    int node = 0;
    int stage = -1;  // that is complete after it
  };

  struct LossStep {
    std::unique_ptr<LossOp> op;
    const std::string* name = nullptr;  // of the layer
    int first_sum = 0;
    std::vector<void*> inputs;
    std::vector<void*> gradients;      // of the inputs; null: nobody needs it
    std::vector<TargetArray> targets;  // of the minibatch, for the call
  };

  Execution(Graph graph, int max_batch, Backend* backend)
      : graph_(std::move(graph)), max_batch_(max_batch), backend_(backend) {}
  Status MakeOps();
  Status MakeLosses();
  void RunLosses(int batch, std::span<const TargetArray> targets, bool backward, double* sums);
  Status MakeSteps(const StepPlan& plan);
  void MakeAdditions();
  void FindStages();
  Step StepOf(const Instruction& instruction, const StepPlan& plan);
  void* ArrayAt(int array, const StepPlan& plan);
  void ComeTo(const std::string& layer, bool backward) {
    backend_->SetPlace(&layer);
    if (watcher_) watcher_(layer, backward);
  }

  Graph graph_;
  const int max_batch_;
  Backend* const backend_;
  std::vector<std::unique_ptr<Op>> ops_;   // by node
  std::vector<std::unique_ptr<Op>> sums_;  // of gradients
  std::vector<LossStep> losses_;
  std::vector<DeviceArray<std::byte>> inputs_;
  DeviceArray<std::byte> arrays_;
  std::vector<const void*> outputs_;
  std::vector<Step> forward_;
  std::vector<Step> backward_;   // after the loss
  std::vector<bool> goes_back_;  // by node
  std::vector<Range> stages_;
  std::vector<std::vector<Addition>> additions_;  // by node, in the order of its parameters
  Watcher watcher_;
};

}  // namespace kumo
