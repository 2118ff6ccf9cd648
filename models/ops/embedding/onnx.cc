// Embedding as Gather. Read from: Gather of rows of a table, by an input of integers.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/embedding/spec.h"

namespace kumo {

OnnxValue OnnxForm(const EmbeddingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue words = builder.WithExtents(node.input(), {spec.positions});
  const OnnxValue vectors = builder.Add("Gather", {node.parameters[0], words.name},
                                        {spec.positions, spec.outputs}, {{"axis", int64_t{0}}});
  return builder.WithExtents(Transposed(vectors, &builder), spec.output().extents());
}

namespace {

OnnxReading ReadEmbedding(const OnnxCall& call) {
  if (!call.IsConstant(0) || !call.IsArray(1) || call.Int("axis", 0) != 0) return NotRead();
  const OnnxConstant& table = call.constant(0);
  const OnnxOperand& words = call.inputs[1];
  const ImportNode& input = call.graph.node(words.node);
  if (table.dims.size() != 2) return NotRead();
  const bool whole = words.view.IsInOrder() && words.view.size() == input.shape.size();
  if (input.input < 0 || !input.integers || !whole) {
    return InvalidArgument("an embedding reads all of an input of integers, in its order");
  }
  if (table.dims[0] < 1) return InvalidArgument("its table has no rows");
  KUMO_RETURN_IF_ERROR(call.graph.SetVocabulary(words.node, table.dims[0]));
  model::Layer layer;
  layer.mutable_embedding()->set_outputs(
      static_cast<int>(std::min<int64_t>(table.dims[1], int64_t{1} << 30)));
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {words.node},
                                                            {{"weight", table}}, &call.node));
  // Vectors are the last axis there, and the channels here.
  std::vector<int64_t> extents = words.view.extents;
  extents.insert(extents.begin(), table.dims[1]);
  OnnxOperand output = call.graph.OutputOf(node, extents);
  output.view = output.view.WithFrontAxisAt(output.view.rank() - 1);
  return Read(std::move(output));
}

}  // namespace

std::span<const OnnxReader> EmbeddingOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Gather", ReadEmbedding}};
  return kReaders;
}

}  // namespace kumo
