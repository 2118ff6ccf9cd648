// Concatenation as Concat. Read from: Concat of arrays, along any axis of a sample.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/concat/spec.h"

namespace kumo {

OnnxValue OnnxForm(const ConcatSpec& spec, const OnnxNode& node) {
  std::vector<std::string> names;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    names.push_back(node.builder.WithExtents(node.inputs[i], spec.inputs[i].extents()).name);
  }
  return node.builder.Add("Concat", names, spec.output().extents(), {{"axis", int64_t{1}}});
}

namespace {

OnnxReading ReadConcat(const OnnxCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.IsArray(i)) return NotRead();
  }
  if (call.inputs.empty()) return NotRead();
  const StridedView& first = call.inputs[0].view;
  const auto axis = OnnxCall::SampleAxis(call.Int("axis", 0), first.rank());
  if (!axis) return InvalidArgument("axis: it joins samples");
  if (call.inputs.size() == 1) return Read(call.inputs[0]);
  std::vector<int> nodes;
  std::vector<int64_t> extents = first.WithAxisInFront(*axis).extents;
  extents[0] = 0;
  for (const OnnxOperand& input : call.inputs) {
    if (input.view.rank() != first.rank()) return InvalidArgument("its arrays have several ranks");
    OnnxOperand front = input;
    front.view = input.view.WithAxisInFront(*axis);
    extents[0] += front.view.extents[0];
    KUMO_ASSIGN_OR_RETURN(const int node, call.graph.InOrder(front));
    nodes.push_back(node);
  }
  model::Layer layer;
  layer.mutable_concat();
  KUMO_ASSIGN_OR_RETURN(const int node,
                        call.graph.AddLayer(std::move(layer), std::move(nodes), {}, &call.node));
  if (call.graph.node(node).shape != Shape(extents)) {
    return InvalidArgument("its arrays must differ along its axis only");
  }
  OnnxOperand output = call.graph.OutputOf(node, extents);
  output.view = output.view.WithFrontAxisAt(*axis);
  return Read(std::move(output));
}

}  // namespace

std::span<const OnnxReader> ConcatOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Concat", ReadConcat}};
  return kReaders;
}

}  // namespace kumo
