// Dropout, which has no effect in use. Read from: Dropout: without effect in use, but kept for
// further training.
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/dropout/spec.h"

namespace kumo {

OnnxValue OnnxForm(const DropoutSpec&, const OnnxNode& node) { return node.input(); }

namespace {

OnnxReading ReadDropout(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  if (call.IsArray(1)) return InvalidArgument("its ratio must be a constant");
  double ratio = call.Float("ratio", 0.5f);
  if (call.IsConstant(1)) ratio = call.constant(1).Scalar().value_or(0);
  if (ratio <= 0) return Read(call.inputs[0]);
  model::Layer layer;
  layer.mutable_dropout()->set_ratio(static_cast<float>(ratio));
  return ReadElementwise(call, call.inputs[0], std::move(layer));
}

}  // namespace

std::span<const OnnxReader> DropoutOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Dropout", ReadDropout}};
  return kReaders;
}

}  // namespace kumo
