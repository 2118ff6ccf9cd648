#include "models/graph/step_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

namespace kumo {
namespace {

constexpr int64_t kAlignment = 256;  // what a GPU's allocator gives, and more than a CPU's vectors

int64_t RoundUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Planner {
 public:
  Planner(const Graph& graph, std::span<const OpTraits> traits,
          const std::function<int64_t(const Shape&)>& bytes_of)
      : graph_(graph),
        traits_(traits),
        bytes_of_(bytes_of),
        needs_gradient_(graph.values.size()),
        gradients_(graph.values.size(), kNoArray) {
    plan_.array_of.assign(graph.values.size(), kNoArray);
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      plan_.array_of[i] = NewArray(graph.values[i].shape);
    }
  }

  StepPlan Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) Forward(static_cast<int>(i));
    Losses();
    for (size_t i = graph_.nodes.size(); i-- > 0;) Backward(static_cast<int>(i));
    for (size_t i = 0; i < graph_.inputs.size(); ++i) arrays_[i].bytes = 0;
    plan_.offsets = PlaceArrays(arrays_, &plan_.bytes);
    return std::move(plan_);
  }

 private:
  static constexpr int kNoArray = -1;

  int NewArray(const Shape& shape) {
    arrays_.push_back({bytes_of_(shape), time_, time_});
    holders_.push_back(0);
    return static_cast<int>(arrays_.size()) - 1;
  }
  void Emit(Instruction instruction, std::vector<Instruction>* to) {
    for (const auto* arrays : {&instruction.inputs, &instruction.outputs, &instruction.grad_outputs,
                               &instruction.grad_inputs}) {
      for (const int array : *arrays) {
        if (array != kNoArray) arrays_[array].last = std::max(arrays_[array].last, time_);
      }
    }
    to->push_back(std::move(instruction));
    ++time_;
  }
  std::vector<int> ArraysOf(const std::vector<int>& values) const {
    std::vector<int> arrays;
    for (const int value : values) arrays.push_back(plan_.array_of[value]);
    return arrays;
  }

  // Whether anybody reads the value after the forward of `node`. Nodes up to `node` are known to go
  // backward or not.
  bool IsReadAfter(int value, int node) const {
    for (const LossNode& loss : graph_.losses) {
      if (std::ranges::count(loss.inputs, value) > 0) return true;
    }
    if (std::ranges::count(graph_.outputs, value, &Output::value) > 0) return true;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& other = graph_.nodes[i];
      const bool goes_back = needs_gradient_[other.outputs[0]];
      if (std::ranges::count(other.outputs, value) > 0 && traits_[i].reads_output && goes_back) {
        return true;
      }
      const int64_t reads = std::ranges::count(other.inputs, value);
      if (reads == 0) continue;
      if (static_cast<int>(i) > node || (traits_[i].reads_input && goes_back)) return true;
      if (static_cast<int>(i) == node && reads > 1) return true;
    }
    return false;
  }

  void Forward(int index) {
    const Node& node = graph_.nodes[index];
    bool needs = graph_.trains(node);
    for (const int input : node.inputs) needs = needs || needs_gradient_[input];
    for (const int output : node.outputs) needs_gradient_[output] = needs;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const int output = node.outputs[i];
      const int input = node.inputs[0];
      const bool in_place = i == 0 && traits_[index].can_run_in_place && !graph_.IsInput(input) &&
                            !graph_.IsInput(plan_.array_of[input]) && !IsReadAfter(input, index);
      plan_.array_of[output] =
          in_place ? plan_.array_of[input] : NewArray(graph_.values[output].shape);
    }
    Instruction forward;
    forward.kind = Instruction::Kind::kForward;
    forward.node = index;
    forward.inputs = ArraysOf(node.inputs);
    forward.outputs = ArraysOf(node.outputs);
    Emit(std::move(forward), &plan_.forward);
  }

  // All losses go first, so that they can do so without the rest where nobody trains; then the
  // gradients of those that read the same value are added.
  void Losses() {
    std::vector<std::pair<int, int>> made;  // values and their gradients
    for (size_t l = 0; l < graph_.losses.size(); ++l) {
      const LossNode& node = graph_.losses[l];
      Instruction loss;
      loss.kind = Instruction::Kind::kLoss;
      loss.node = static_cast<int>(l);
      loss.inputs = ArraysOf(node.inputs);
      for (const int input : node.inputs) {
        const bool trains = node.weight != 0 && needs_gradient_[input];
        loss.grad_inputs.push_back(trains ? NewArray(graph_.values[input].shape) : kNoArray);
        if (trains) made.emplace_back(input, loss.grad_inputs.back());
      }
      Emit(std::move(loss), &plan_.backward);
    }
    for (const Output& output : graph_.outputs) {
      int& last = arrays_[plan_.array_of[output.value]].last;
      last = std::max(last, time_ - 1);
    }
    for (const auto& [value, gradient] : made) Contribute(value, gradient);
  }

  void Hold(int value, int array) {
    gradients_[value] = array;
    ++holders_[array];
  }
  void Release(int value) { --holders_[gradients_[value]]; }

  void Backward(int index) {
    const Node& node = graph_.nodes[index];
    if (gradients_[node.outputs[0]] == kNoArray) return;
    if (traits_[index].passes_gradient) return PassOn(node);
    Instruction backward;
    backward.kind = Instruction::Kind::kBackward;
    backward.node = index;
    if (traits_[index].reads_input) backward.inputs = ArraysOf(node.inputs);
    if (traits_[index].reads_output) backward.outputs = ArraysOf(node.outputs);
    for (const int output : node.outputs) {
      backward.grad_outputs.push_back(gradients_[output]);
      Release(output);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int input = node.inputs[i];
      if (!needs_gradient_[input]) {
        backward.grad_inputs.push_back(Instruction::kNone);
        continue;
      }
      const int first = backward.grad_outputs[0];
      const bool in_place = i == 0 && traits_[index].can_run_in_place && holders_[first] == 0;
      backward.grad_inputs.push_back(in_place ? first : NewArray(graph_.values[input].shape));
    }
    const std::vector<int> made = backward.grad_inputs;
    Emit(std::move(backward), &plan_.backward);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (made[i] != Instruction::kNone) Contribute(node.inputs[i], made[i]);
    }
  }

  // Each input's gradient is the output's.
  void PassOn(const Node& node) {
    const int passed = gradients_[node.outputs[0]];
    Release(node.outputs[0]);
    // Readers that still need the array: it is not written before they have read it.
    for (const int input : node.inputs) holders_[passed] += needs_gradient_[input] ? 1 : 0;
    for (const int input : node.inputs) {
      if (!needs_gradient_[input]) continue;
      --holders_[passed];
      Contribute(input, passed);
    }
  }

  // `array` holds a gradient of the value: the first one, or one that is added.
  void Contribute(int value, int array) {
    const int before = gradients_[value];
    if (before == kNoArray) return Hold(value, array);
    Release(value);
    const Shape& shape = graph_.values[value].shape;
    Instruction sum;
    sum.kind = Instruction::Kind::kSum;
    sum.shape = shape;
    sum.inputs = {before, array};
    if (holders_[array] == 0) {
      sum.outputs = {array};
    } else {
      sum.outputs = {holders_[before] == 0 ? before : NewArray(shape)};
    }
    const int result = sum.outputs[0];
    Emit(std::move(sum), &plan_.backward);
    Hold(value, result);
  }

  const Graph& graph_;
  const std::span<const OpTraits> traits_;
  const std::function<int64_t(const Shape&)>& bytes_of_;
  std::vector<bool> needs_gradient_;  // by value
  std::vector<int> gradients_;        // arrays, by value
  std::vector<int> holders_;          // by array: values whose gradient it is, still to be read
  std::vector<Lifetime> arrays_;
  int time_ = 0;
  StepPlan plan_;
};

}  // namespace

StepPlan MakeStepPlan(const Graph& graph, std::span<const OpTraits> traits,
                      const std::function<int64_t(const Shape&)>& bytes_of) {
  return Planner(graph, traits, bytes_of).Run();
}

std::vector<int64_t> PlaceArrays(std::span<const Lifetime> arrays, int64_t* total) {
  std::vector<size_t> order(arrays.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return arrays[a].bytes > arrays[b].bytes; });
  std::vector<int64_t> offsets(arrays.size());
  std::multimap<int64_t, size_t> placed;  // by offset
  *total = 0;
  for (const size_t i : order) {
    int64_t at = 0;
    for (const auto& [offset, other] : placed) {
      const bool together =
          arrays[other].first <= arrays[i].last && arrays[i].first <= arrays[other].last;
      if (!together) continue;
      if (at + RoundUp(arrays[i].bytes) <= offset) break;
      at = std::max(at, offset + RoundUp(arrays[other].bytes));
    }
    offsets[i] = at;
    placed.emplace(at, i);
    *total = std::max(*total, at + RoundUp(arrays[i].bytes));
  }
  return offsets;
}

}  // namespace kumo
