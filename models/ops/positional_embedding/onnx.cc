// Positional embedding as Add. Read from: Sum of a sequence and a constant for each of its numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/positional_embedding/spec.h"

namespace kumo {

OnnxValue OnnxForm(const PositionalEmbeddingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), SequenceExtents(spec.shape));
  const OnnxValue vectors =
      builder.Add("Transpose", {node.parameters[0]}, {}, {{"perm", std::vector<int64_t>{1, 0}}});
  const OnnxValue sum = Plus(input, vectors.name, &builder);
  return builder.WithExtents(sum, node.input().extents);
}

namespace {

OnnxReading ReadPositional(const OnnxCall& call) {
  const auto operands = call.OneConstant();
  if (!operands || !operands->constant.is_float()) return NotRead();
  const OnnxOperand& array = operands->array;
  const auto dims = SampleDims(operands->constant, array.view.rank());
  if (!dims || *dims != array.view.extents || array.view.rank() > 2) return NotRead();
  if (array.view.size() == 1) return NotRead();  // a part of a normalisation
  const auto is_finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(*operands->constant.floats, is_finite)) return NotRead();  // a mask
  // The channels are the axis that the sequence has as such: the one of the largest stride.
  KUMO_ASSIGN_OR_RETURN(const OnnxOperand whole, call.graph.Whole(array));
  const std::vector<int> axes = whole.view.AxesByStride();
  const int channels = axes.empty() ? 0 : axes[0];
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(whole, channels));
  if (call.graph.node(input).shape.rank() > 2) return NotRead();
  const StridedView elements = StridedView::Of(*dims).WithAxisInFront(channels);
  StridedView rows = elements;  // positions x channels
  if (rows.rank() == 1) rows = *rows.Reshaped({rows.extents[0], 1});
  rows = rows.Permuted({1, 0});
  KUMO_RETURN_IF_ERROR(call.graph.Count(rows.size()));
  model::Layer layer;
  layer.mutable_positional_embedding();
  KUMO_ASSIGN_OR_RETURN(
      const int node,
      call.graph.AddLayer(std::move(layer), {input},
                          {{"weight", operands->constant.WithDims(*dims).Taken(rows)}},
                          &call.node));
  return Read(call.graph.OutputWithChannels(node, whole, channels));
}

}  // namespace

std::span<const OnnxReader> PositionalEmbeddingOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Add", ReadPositional}};
  return kReaders;
}

}  // namespace kumo
