// Fully connected layer as Gemm, or MatMul for each position.
#include <cstdint>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/fully_connected/spec.h"

namespace kumo {
namespace {

OnnxValue PositionProductForm(const FullyConnectedSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), {spec.inputs, spec.positions});
  OnnxValue output =
      builder.Add("MatMul", {node.parameters[0], input.name}, {spec.outputs, spec.positions});
  if (spec.bias) {
    const OnnxValue bias =
        builder.Add("Reshape", {node.parameters[1], builder.Integers({spec.outputs, 1})}, {});
    output = Plus(output, bias.name, &builder);
  }
  if (spec.activation) output = Activated(*spec.activation, 0, output, &builder);
  std::vector<int64_t> extents = node.input().extents;
  extents[0] = spec.outputs;
  return builder.WithExtents(output, extents);
}

}  // namespace

OnnxValue OnnxForm(const FullyConnectedSpec& spec, const OnnxNode& node) {
  if (spec.positions > 1) return PositionProductForm(spec, node);
  const OnnxValue input = node.builder.WithExtents(node.input(), {spec.inputs});
  const OnnxValue output =
      node.builder.Add("Gemm", node.OperandsOf(input), {spec.outputs}, {{"transB", int64_t{1}}});
  return spec.activation ? Activated(*spec.activation, 0, output, &node.builder) : output;
}

}  // namespace kumo
