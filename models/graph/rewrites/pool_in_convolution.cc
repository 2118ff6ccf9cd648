#include "models/graph/rewrites/rewrites.h"

namespace kumo {

void PoolInConvolution(const std::function<bool(const ConvolutionSpec&)>& fuses, Graph* graph) {
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    Node& node = graph->nodes[i];
    auto* const convolution = node.As<ConvolutionSpec>();
    if (convolution == nullptr || convolution->pool || convolution->groups > 1 ||
        !fuses(*convolution)) {
      continue;
    }
    Node* const reader = graph->SoleReader(node.outputs[0]);
    if (reader == nullptr) continue;
    const auto* const pool = reader->As<PoolingSpec>();
    if (pool == nullptr || pool->kind != PoolingSpec::Kind::kMax || pool->pad != 0 || pool->ceil ||
        pool->stride != pool->kernel_height || pool->stride != pool->kernel_width) {
      continue;
    }
    convolution->pool = *pool;
    node.outputs = reader->outputs;
    graph->Remove(reader);
  }
}

}  // namespace kumo
