// Add and Sum of arrays of equal extents.
#include <utility>

#include "models/onnx/readers.h"

namespace kumo {
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
