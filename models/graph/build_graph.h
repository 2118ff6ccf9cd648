// Builder of a graph from a network file's layers, with all checks. Pure; thread-safe.
#pragma once

#include "common/base/status.h"
#include "models/graph/graph.h"
#include "proto/model.pb.h"

namespace kumo {

// InvalidArgument "layer conv2: kernel must be 1 to 64, is 0"; *layer_at_fault becomes the index of
// the layer with the error, -1 if no single layer has it.
Result<Graph> BuildGraph(const model::Network& network, int* layer_at_fault);

}  // namespace kumo
