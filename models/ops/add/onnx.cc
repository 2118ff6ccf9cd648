// Sum as Add. Read from: Add and Sum of arrays of equal extents.
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/add/spec.h"

namespace kumo {

OnnxValue OnnxForm(const AddSpec&, const OnnxNode& node) {
  OnnxValue sum = node.input();
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    // One of two equal shapes may be a vector here and n x 1 x 1 there.
    sum = Plus(sum, node.builder.WithExtents(node.inputs[i], sum.extents).name, &node.builder);
  }
  return sum;
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

}  // namespace

std::span<const OnnxReader> AddOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Add", ReadSum}, {"Sum", ReadSum}};
  return kReaders;
}

}  // namespace kumo
