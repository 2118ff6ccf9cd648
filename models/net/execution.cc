// Make resolves all decisions once, so that a step is a walk over a list of ops with arrays:
//
//   rewrite the graph -> make the ops -> plan instructions and places (step_plan.h) -> allocate one
//   piece of memory -> steps with pointers -> additions for shared tensors -> stages
//
// Addresses do not change afterwards: a device may record a step and repeat it.
//
// Shared tensors. A tensor of several nodes gets its gradient from each of them. The first one on
// the way back writes it; each further node computes into an array of its own, which is added
// (Addition). The order is the graph's, so the bits are, too.
//
// Stages. A tensor's gradient is complete when the first node in the order of the graph that uses
// it has gone backward. on_stage then tells the caller, who can code and send it while the rest of
// the backward pass is computed.
//
// Inputs are arrays of their own, outside the shared piece of memory: the loader fills them before
// the step begins.
#include "models/net/execution.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "models/graph/rewrites/rewrites.h"

namespace kumo {
namespace {

void Rewrite(const Backend& backend, Graph* graph) {
  PoolBeforeActivation(graph);
  PoolInConvolution([&](const ConvolutionSpec& spec) { return backend.FusesPooling(spec); }, graph);
  Flattening([&](const Shape& shape) { return backend.FlatteningMoves(shape); }, graph);
  FuseActivation([&](Activation activation) { return backend.FusesActivation(activation); }, graph);
}

}  // namespace

Result<std::unique_ptr<Execution>> Execution::Make(Graph graph, int max_batch, Backend* backend) {
  Rewrite(*backend, &graph);
  std::unique_ptr<Execution> execution(new Execution(std::move(graph), max_batch, backend));
  KUMO_RETURN_IF_ERROR(execution->MakeOps());
  const auto bytes_of = [&](const Shape& shape) {
    return backend->ActivationBytes(shape, max_batch);
  };
  std::vector<OpTraits> traits;
  for (const auto& op : execution->ops_) {
    traits.push_back(
        {op->can_run_in_place(), op->reads_input(), op->reads_output(), op->passes_gradient()});
  }
  const StepPlan plan = MakeStepPlan(execution->graph_, traits, bytes_of);
  for (size_t i = 0; i < execution->graph_.inputs.size(); ++i) {
    const Value& value = execution->graph_.values[i];
    const auto numbers = value.shape.size() * max_batch * static_cast<int64_t>(sizeof(int32_t));
    execution->inputs_.emplace_back(
        *backend, value.vocabulary > 0 ? numbers : bytes_of(value.shape), "a minibatch");
  }
  execution->arrays_ =
      DeviceArray<std::byte>(*backend, plan.bytes, "activations and their gradients");
  KUMO_RETURN_IF_ERROR(execution->MakeSteps(plan));
  execution->MakeAdditions();
  execution->FindStages();
  return execution;
}

Status Execution::MakeOps() {
  for (const Node& node : graph_.nodes) {
    Result<std::unique_ptr<Op>> op = backend_->MakeOp(node.spec, max_batch_);
    KUMO_RETURN_IF_ERROR(op.status().WithContext("layer " + node.name));
    ops_.push_back(std::move(op).value());
  }
  losses_.resize(graph_.losses.size());
  KUMO_RETURN_IF_ERROR(MakeLosses());
  backend_->TakeShared();
  return OkStatus();
}

Status Execution::MakeLosses() {
  for (size_t l = 0; l < losses_.size(); ++l) {
    const LossNode& loss = graph_.losses[l];
    Result<std::unique_ptr<LossOp>> op = backend_->MakeLoss(loss.spec, max_batch_);
    KUMO_RETURN_IF_ERROR(op.status().WithContext("layer " + loss.name));
    losses_[l].op = std::move(op).value();
    losses_[l].name = &loss.name;
    losses_[l].first_sum = loss.first_sum;
  }
  return OkStatus();
}

Status Execution::TakeShares(int target, bool shares) {
  bool changed = false;
  const auto take = [&]<typename Spec>(Spec& spec) {
    if constexpr (requires { spec.shares; })
      changed |= std::exchange(spec.shares, shares) != shares;
  };
  for (LossNode& loss : graph_.losses) {
    if (std::ranges::count(loss.targets, target) > 0) std::visit(take, loss.spec);
  }
  return changed ? MakeLosses() : OkStatus();
}

void* Execution::ArrayAt(int array, const StepPlan& plan) {
  if (array == Instruction::kNone) return nullptr;
  if (graph_.IsInput(array)) return inputs_[array].data();
  // Without enough memory nothing was allocated, and nothing will be run.
  return arrays_.empty() ? nullptr : arrays_.data() + plan.offsets[array];
}

Execution::Step Execution::StepOf(const Instruction& instruction, const StepPlan& plan) {
  const auto arrays = [&](const std::vector<int>& from, std::vector<void*>* to) {
    for (const int array : from) to->push_back(ArrayAt(array, plan));
  };
  Step step;
  step.kind = instruction.kind;
  step.node = instruction.node;
  arrays(instruction.inputs, &step.inputs);
  arrays(instruction.outputs, &step.outputs);
  arrays(instruction.grad_outputs, &step.grad_outputs);
  arrays(instruction.grad_inputs, &step.grad_inputs);
  return step;
}

Status Execution::MakeSteps(const StepPlan& plan) {
  goes_back_.assign(graph_.nodes.size(), false);
  for (const Output& output : graph_.outputs) {
    outputs_.push_back(ArrayAt(plan.array_of[output.value], plan));
  }
  for (const Instruction& instruction : plan.forward) {
    Step step = StepOf(instruction, plan);
    step.op = ops_[instruction.node].get();
    step.name = &graph_.nodes[instruction.node].name;
    forward_.push_back(std::move(step));
  }
  for (const Instruction& instruction : plan.backward) {
    Step step = StepOf(instruction, plan);
    if (instruction.kind == Instruction::Kind::kLoss) {
      losses_[instruction.node].inputs = step.inputs;
      losses_[instruction.node].gradients = step.grad_inputs;
      continue;
    }
    if (instruction.kind == Instruction::Kind::kSum) {
      KUMO_ASSIGN_OR_RETURN(auto sum,
                            backend_->MakeOp(ElementwiseSpec{instruction.shape}, max_batch_));
      step.op = sum.get();
      step.name = &graph_.name;
      sums_.push_back(std::move(sum));
    } else {
      step.op = ops_[instruction.node].get();
      step.name = &graph_.nodes[instruction.node].name;
      goes_back_[instruction.node] = true;
    }
    backward_.push_back(std::move(step));
  }
  return OkStatus();
}

// A tensor's gradient is complete when the first node that uses it, of those that go backward, has
// done so.
void Execution::FindStages() {
  std::vector<int> first_user(graph_.parameters.size(), -1);
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    if (!goes_back_[i]) continue;
    for (const int parameter : graph_.nodes[i].parameters) {
      first_user[parameter] = static_cast<int>(i);
    }
  }
  for (Step& step : backward_) {
    if (step.kind != Instruction::Kind::kBackward) continue;
    const std::vector<int>& parameters = graph_.nodes[step.node].parameters;
    if (!graph_.trains(graph_.nodes[step.node]) || first_user[parameters.front()] != step.node)
      continue;
    step.stage = static_cast<int>(stages_.size());
    stages_.push_back({parameters.front(), parameters.back() + 1});
  }
}

void Execution::MakeAdditions() {
  additions_.resize(graph_.nodes.size());
  std::set<int> made;  // tensors that have a gradient already, on the way back
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    if (!goes_back_[i]) continue;
    for (const int parameter : graph_.nodes[i].parameters) {
      const TensorSpec& tensor = graph_.parameters[parameter].tensor;
      if (!tensor.trained() || made.insert(parameter).second) continue;
      additions_[i].push_back(
          {parameter, {*backend_, tensor.size(), "gradients of shared tensors"}});
    }
  }
}

void Execution::Bind(const ParameterLayout& layout, float* weights, float* gradients) {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    std::vector<float*> node_weights;
    std::vector<float*> node_gradients;
    auto aside = additions_[i].begin();
    for (const int parameter : graph_.nodes[i].parameters) {
      const int64_t place = layout.tensor(parameter).begin;
      node_weights.push_back(weights + place);
      const bool trained = gradients != nullptr && graph_.parameters[parameter].tensor.trained();
      node_gradients.push_back(trained ? gradients + place : nullptr);
      if (aside == additions_[i].end() || aside->parameter != parameter) continue;
      if (gradients != nullptr) {
        aside->to = std::exchange(node_gradients.back(), aside->made.data());
      }
      ++aside;
    }
    ops_[i]->Bind(node_weights, node_gradients);
  }
}

void Execution::Forward(const Pass& pass) {
  for (const Step& step : forward_) {
    ComeTo(*step.name, false);
    step.op->Forward(pass, step.inputs, step.outputs);
  }
}

void Execution::RunLosses(int batch, std::span<const TargetArray> targets, bool backward,
                          double* sums) {
  for (size_t l = 0; l < losses_.size(); ++l) {
    LossStep& loss = losses_[l];
    loss.targets.clear();
    for (const int target : graph_.losses[l].targets) loss.targets.push_back(targets[target]);
    ComeTo(*loss.name, backward);
    LossArrays arrays = {loss.inputs, loss.targets, {}};
    if (backward) arrays.grad_inputs = loss.gradients;
    loss.op->Run(batch, arrays, sums + loss.first_sum);
  }
}

void Execution::AddLosses(int batch, std::span<const TargetArray> targets, double* sums) {
  RunLosses(batch, targets, false, sums);
}

void Execution::ReadOutput(int output, int batch, float* to) {
  backend_->StoreOutputs(graph_.values[graph_.outputs[output].value].shape, batch, outputs_[output],
                         to);
}

void Execution::ReadLossInput(int i, int batch, float* to) {
  const int value = graph_.loss().inputs[i];
  backend_->StoreOutputs(graph_.values[value].shape, batch, losses_.back().inputs[i], to);
}

void Execution::Backward(const Pass& pass, std::span<const TargetArray> targets, double* sums,
                         const std::function<void(int)>& on_stage) {
  RunLosses(pass.batch, targets, true, sums);
  for (const Step& step : backward_) {
    ComeTo(*step.name, true);
    if (step.kind == Instruction::Kind::kSum) {
      step.op->Forward(pass, step.inputs, step.outputs);
      continue;
    }
    step.op->Backward(pass, {step.inputs, step.outputs, step.grad_outputs, step.grad_inputs});
    for (const Addition& addition : additions_[step.node]) {
      backend_->AddTo(1.0f, addition.made.data(), addition.made.size(), addition.to);
    }
    if (step.stage >= 0 && on_stage) on_stage(step.stage);
  }
}

int64_t Execution::bytes() const {
  int64_t bytes = arrays_.bytes();
  for (const auto& input : inputs_) bytes += input.bytes();
  for (const auto& op : ops_) bytes += op->bytes();
  for (const auto& additions : additions_) {
    for (const Addition& addition : additions) bytes += addition.made.bytes();
  }
  return bytes;
}

}  // namespace kumo
