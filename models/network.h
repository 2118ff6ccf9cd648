// Network file, read and checked: from text protobuf to a graph with its shapes and tensors. No
// function touches a device, so `kumo check` and the servers' tools can use them. Values and pure
// functions; thread-safe.
#pragma once

#include <string>

#include "common/base/status.h"
#include "models/graph/graph.h"
#include "proto/model.pb.h"

namespace kumo {

// Reads and checks a text-protobuf file. NotFound or Unavailable if the file cannot be read.
// InvalidArgument "file:line:column: ..." if it is no network, with the likely meaning of an
// unknown field, and "file:line: layer conv2: kernel must be ..." if a field is wrong.
Result<model::Network> LoadNetwork(const std::string& path);

// The same from memory; `name` stands for the file in messages.
Result<model::Network> ParseNetwork(const std::string& text, const std::string& name);

// The same network as text protobuf in one line, without the file's comments.
std::string NetworkText(const model::Network& network);

// InvalidArgument "layer conv2: kernel must be 1 to 64, is 0".
Result<Graph> PlanNetwork(const model::Network& network);

}  // namespace kumo
