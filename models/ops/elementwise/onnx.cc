// Sum as Add, product as Mul. Read from: Add, Sum, and Mul of two, of arrays of equal extents.
#include <string>
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/elementwise/spec.h"

namespace kumo {

OnnxValue OnnxForm(const ElementwiseSpec& spec, const OnnxNode& node) {
  OnnxValue result = node.input();
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    // One of two equal shapes may be a vector here and n x 1 x 1 there.
    const std::string other = node.builder.WithExtents(node.inputs[i], result.extents).name;
    result = spec.function == Elementwise::kSum ? Plus(result, other, &node.builder)
                                                : Times(result, other, &node.builder);
  }
  return result;
}

namespace {

OnnxReading ReadSum(const OnnxCall& call) {
  if (call.inputs.size() < 2) return NotRead();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.IsArray(i)) return NotRead();
  }
  KUMO_ASSIGN_OR_RETURN(const OnnxOperand first, call.graph.Whole(call.inputs[0]));
  std::vector<int> nodes = {first.node};
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    KUMO_ASSIGN_OR_RETURN(const std::optional<int> node,
                          call.graph.LaidOutAs(call.inputs[i], first));
    if (!node) {
      return InvalidArgument("it adds arrays of " + first.view.ExtentsText() + " and " +
                             call.inputs[i].view.ExtentsText() + "; an add takes equal shapes");
    }
    nodes.push_back(*node);
  }
  model::Layer layer;
  layer.mutable_add();
  KUMO_ASSIGN_OR_RETURN(const int node,
                        call.graph.AddLayer(std::move(layer), std::move(nodes), {}, &call.node));
  return Read(call.graph.OutputLike(node, first));
}

OnnxReading ReadMultiply(const OnnxCall& call) {
  if (!call.TwoArrays()) return NotRead();
  KUMO_ASSIGN_OR_RETURN(const OnnxOperand first, call.graph.Whole(call.inputs[0]));
  KUMO_ASSIGN_OR_RETURN(const std::optional<int> second,
                        call.graph.LaidOutAs(call.inputs[1], first));
  if (!second) {
    return InvalidArgument("it multiplies arrays of " + first.view.ExtentsText() + " and " +
                           call.inputs[1].view.ExtentsText() + "; a multiply takes equal shapes");
  }
  model::Layer layer;
  layer.mutable_multiply();
  KUMO_ASSIGN_OR_RETURN(
      const int node, call.graph.AddLayer(std::move(layer), {first.node, *second}, {}, &call.node));
  return Read(call.graph.OutputLike(node, first));
}

}  // namespace

std::span<const OnnxReader> ElementwiseOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {
      {"Add", ReadSum}, {"Sum", ReadSum}, {"Mul", ReadMultiply}};
  return kReaders;
}

}  // namespace kumo
