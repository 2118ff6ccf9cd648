#include "models/graph/causality.h"

#include <cstdint>
#include <span>
#include <variant>

namespace kumo {
namespace {

// Of each op: whether a position's result may depend on later ones. An op that is new says so here.
struct LooksAhead {
  int64_t positions = 1;

  bool operator()(const AttentionSpec& spec) const { return !spec.causal; }
  bool operator()(const FullyConnectedSpec& spec) const { return spec.positions != positions; }
  bool operator()(const ConvolutionSpec& spec) const {
    return spec.kernel_height != 1 || spec.kernel_width != 1 || spec.stride != 1 || spec.pad != 0 ||
           spec.pool.has_value();
  }
  // The last axis stays as it is: the others alone are moved.
  bool operator()(const RearrangeSpec& spec) const {
    const std::span<const int64_t> strides = spec.strides;
    if (spec.input.extents().back() != positions || spec.output.extents().back() != positions ||
        strides.back() != 1 || spec.offset % positions != 0) {
      return true;
    }
    for (const int64_t stride : strides.first(strides.size() - 1)) {
      if (stride % positions != 0) return true;
    }
    return false;
  }
  bool operator()(const PoolingSpec&) const { return true; }
  bool operator()(const FlattenSpec&) const { return true; }
  bool operator()(const GroupNormalisationSpec&) const { return true; }

  bool operator()(const ActivationSpec&) const { return false; }
  bool operator()(const DropoutSpec&) const { return false; }
  bool operator()(const BatchNormalisationSpec&) const { return false; }
  bool operator()(const L2NormalisationSpec&) const { return false; }
  bool operator()(const PositionNormalisationSpec&) const { return false; }
  bool operator()(const EmbeddingSpec&) const { return false; }
  bool operator()(const PositionalEmbeddingSpec&) const { return false; }
  bool operator()(const AddSpec&) const { return false; }
  bool operator()(const MultiplySpec&) const { return false; }
  bool operator()(const ConcatSpec&) const { return false; }
};

}  // namespace

Status CheckCausal(const Graph& graph) {
  const LooksAhead looks_ahead = {graph.values[0].shape.extents().back()};
  for (const Node& node : graph.nodes) {
    if (!std::visit(looks_ahead, node.spec)) continue;
    return InvalidArgument("network " + graph.name + ": layer " + node.name +
                           " looks at what comes after a position, so the network cannot go on "
                           "with a text");
  }
  return OkStatus();
}

}  // namespace kumo
