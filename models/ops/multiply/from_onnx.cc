// Mul of two arrays of equal extents.
#include <utility>

#include "models/onnx/readers.h"

namespace kumo {
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
