#include "models/onnx/op_extents.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "models/onnx/fold.h"

namespace kumo {
namespace {

// Ops whose output has the extents of their first operand.
constexpr const char* kKeepExtents[] = {"Erf",
                                        "Sqrt",
                                        "Exp",
                                        "Log",
                                        "Neg",
                                        "Abs",
                                        "Reciprocal",
                                        "Clip",
                                        "Softmax",
                                        "LogSoftmax",
                                        "HardSwish",
                                        "HardSigmoid",
                                        "Elu",
                                        "Selu",
                                        "Celu",
                                        "Softplus",
                                        "Softsign",
                                        "PRelu",
                                        "Mish",
                                        "Floor",
                                        "Ceil",
                                        "Sign",
                                        "Cast",
                                        "LRN",
                                        "Relu",
                                        "LeakyRelu",
                                        "Sigmoid",
                                        "Tanh",
                                        "Dropout",
                                        "BatchNormalization",
                                        "InstanceNormalization",
                                        "LayerNormalization",
                                        "GroupNormalization",
                                        "MeanVarianceNormalization",
                                        "CumSum",
                                        "Not",
                                        "IsNaN",
                                        "Identity",
                                        "Gelu"};
constexpr const char* kBroadcast[] = {"Add", "Sub", "Mul", "Div",   "Pow",  "Where",
                                      "Max", "Min", "Mod", "Equal", "Less", "Greater",
                                      "And", "Or",  "Sum", "Mean"};

// Ops through which readers look back, with their numbers of operands; a reader counts on them.
struct Arity {
  const char* op;
  size_t least, most;
  bool first_is_array = false;
};
constexpr Arity kArities[] = {{"Add", 2, 2},
                              {"Sub", 2, 2},
                              {"Mul", 2, 2},
                              {"Div", 2, 2},
                              {"Pow", 2, 2},
                              {"MatMul", 2, 2},
                              {"Where", 3, 3},
                              {"Erf", 1, 1, true},
                              {"Sqrt", 1, 1, true},
                              {"Softmax", 1, 1, true},
                              {"LogSoftmax", 1, 1, true},
                              {"ReduceMean", 1, 2, true},
                              {"ReduceSum", 1, 2, true}};

bool IsOneOf(std::span<const char* const> words, const std::string& word) {
  return std::ranges::any_of(words, [&](const char* one) { return word == one; });
}

std::optional<std::vector<int64_t>> ReducedExtents(const OnnxCall& call) {
  const std::vector<int64_t>& extents = call.inputs[0].view.extents;
  const int rank = static_cast<int>(extents.size());
  const auto axes = call.IntsOf("axes", 1);
  if (!axes) return std::nullopt;
  std::vector<bool> reduced(extents.size());
  for (const int64_t axis : *axes) {
    const auto of_sample = OnnxCall::SampleAxis(axis, rank);
    if (!of_sample) return std::nullopt;
    reduced[*of_sample] = true;
  }
  std::vector<int64_t> left;
  const bool keeps = call.Int("keepdims", 1) != 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (!reduced[axis]) left.push_back(extents[axis]);
    if (reduced[axis] && keeps) left.push_back(1);
  }
  return left;
}

std::optional<std::vector<int64_t>> ProductExtents(const OnnxCall& call) {
  if (!call.TwoArrays()) return std::nullopt;
  std::vector<int64_t> a = call.inputs[0].view.extents;
  std::vector<int64_t> b = call.inputs[1].view.extents;
  if (a.size() < 2 || b.size() != a.size() || a.back() != b[b.size() - 2]) return std::nullopt;
  const std::vector<int64_t> last = {a[a.size() - 2], b.back()};
  a.resize(a.size() - 2);
  b.resize(a.size());
  auto extents = BroadcastExtents({a, b});
  if (extents) extents->insert(extents->end(), last.begin(), last.end());
  return extents;
}

}  // namespace

bool HasItsOperands(const OnnxCall& call) {
  const auto* const arity =
      std::ranges::find(kArities, std::string_view(call.node.op_type()),
                        [](const Arity& one) -> std::string_view { return one.op; });
  if (arity == std::end(kArities)) return true;
  const size_t operands = call.inputs.size();
  if (operands < arity->least || operands > arity->most) return false;
  for (const OnnxOperand& operand : call.inputs) {
    if (!operand.is_array() && !operand.constant) return false;
  }
  return !arity->first_is_array || call.IsArray(0);
}

std::optional<std::vector<int64_t>> ExtentsOf(const OnnxCall& call) {
  const std::string& op = call.node.op_type();
  if (op == "MatMul") return ProductExtents(call);
  if (!call.IsArray(0) && op != "Where" && !IsOneOf(kBroadcast, op)) return std::nullopt;
  if (op.starts_with("Reduce")) return ReducedExtents(call);
  if (IsOneOf(kKeepExtents, op)) return call.inputs[0].view.extents;
  if (!IsOneOf(kBroadcast, op)) return std::nullopt;
  std::vector<std::vector<int64_t>> all;
  int rank = 0;
  for (const OnnxOperand& input : call.inputs) {
    if (input.is_array()) rank = std::max(rank, input.view.rank());
  }
  for (const OnnxOperand& input : call.inputs) {
    if (input.is_array()) {
      all.push_back(input.view.extents);
      continue;
    }
    const auto dims = input.constant ? SampleDims(*input.constant, rank) : std::nullopt;
    if (!dims) return std::nullopt;
    all.push_back(*dims);
  }
  return BroadcastExtents(all);
}

bool IsElementwise(const OnnxCall& call) {
  const std::string& op = call.node.op_type();
  constexpr const char* kNot[] = {"Softmax", "LogSoftmax", "CumSum", "LRN"};
  if (!IsOneOf(kBroadcast, op) && (!IsOneOf(kKeepExtents, op) || IsOneOf(kNot, op))) return false;
  const OnnxOperand* like = nullptr;
  for (const OnnxOperand& input : call.inputs) {
    if (input.constant && input.constant->size() == 1 && SampleDims(*input.constant, 1)) continue;
    if (!input.is_array()) return false;
    const Shape& shape = call.graph.node(input.node).shape;
    if (!input.view.Covers(shape.size())) return false;
    if (like == nullptr) like = &input;
    if (!like->view.SamePlaces(input.view)) return false;
    if (call.graph.node(like->node).shape != shape) return false;
  }
  return like != nullptr;
}

}  // namespace kumo
