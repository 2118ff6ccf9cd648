// A network file, read and checked: from text protobuf to a graph with its shapes and tensors.
// Nothing here touches a device, so `kumo check` and the servers' tools can use it. Values and pure
// functions; thread-safe.
#pragma once

#include <string>

#include "common/base/status.h"
#include "models/graph/graph.h"
#include "proto/model.pb.h"

namespace kumo {

// Reads and checks a text-protobuf file. NotFound or Unavailable when it cannot be read,
// InvalidArgument "file:line:column: ..." when it is no network, with what an unknown field was
// most likely meant to be, and "file:line: layer conv2: kernel must be ..." when a field is wrong.
Result<model::Network> LoadNetwork(const std::string& path);

// The same from memory; `name` stands for the file in messages.
Result<model::Network> ParseNetwork(const std::string& text, const std::string& name);

// The same network as text protobuf in one line, without the file's comments.
std::string NetworkText(const model::Network& network);

// InvalidArgument "layer conv2: kernel must be 1 to 64, is 0".
Result<Graph> PlanNetwork(const model::Network& network);

}  // namespace kumo
