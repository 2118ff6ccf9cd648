// From a network file's layers to their graph, checked. Pure; thread-safe.
#pragma once

#include "common/base/status.h"
#include "models/graph/graph.h"
#include "proto/model.pb.h"

namespace kumo {

// InvalidArgument "layer conv2: kernel must be 1 to 64, is 0"; *layer_at_fault becomes the index of
// the layer that an error is about, -1 where it is about no single one.
Result<Graph> BuildGraph(const model::Network& network, int* layer_at_fault);

}  // namespace kumo
