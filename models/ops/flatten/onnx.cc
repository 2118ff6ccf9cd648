// Flattening as Reshape. Read from: Flatten: a view, since a fully connected layer takes arrays of
// any shape.
#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/flatten/spec.h"

namespace kumo {

OnnxValue OnnxForm(const FlattenSpec& spec, const OnnxNode& node) {
  return node.builder.WithExtents(node.input(), {spec.shape.size()});
}

namespace {

OnnxReading ReadFlatten(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const OnnxOperand& array = call.inputs[0];
  const int64_t axis = call.Int("axis", 1);
  if (axis != 1 && axis != -array.view.rank()) {
    return InvalidArgument("axis must be 1: other axes join samples");
  }
  OnnxOperand flat = array;
  if (const auto view = array.view.Reshaped({array.view.size()})) {
    flat.view = *view;
    return Read(flat);
  }
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.Flat(array));
  return Read(call.graph.OutputOf(node, {array.view.size()}));
}

}  // namespace

std::span<const OnnxReader> FlattenOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Flatten", ReadFlatten}};
  return kReaders;
}

}  // namespace kumo
