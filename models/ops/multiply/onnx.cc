// Product as Mul. Read from: Mul of two arrays of equal extents.
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/multiply/spec.h"

namespace kumo {

OnnxValue OnnxForm(const MultiplySpec&, const OnnxNode& node) {
  const OnnxValue second = node.builder.WithExtents(node.inputs[1], node.input().extents);
  return Times(node.input(), second.name, &node.builder);
}

namespace {

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

std::span<const OnnxReader> MultiplyOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Mul", ReadMultiply}};
  return kReaders;
}

}  // namespace kumo
