// Network file, read and checked: from text protobuf to a graph with its shapes and tensors. No
// function touches a device, so `kumo check` and the servers' tools can use them. Values and pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "models/graph/graph.h"
#include "models/number_words.h"
#include "proto/model.pb.h"

namespace kumo {

// Reads and checks a text-protobuf file. numbers: what its words stand for (number_words.h).
// NotFound or Unavailable if the file cannot be read. InvalidArgument "file:line:column: ..." if it
// is no network, with the likely meaning of an unknown field, "file:line: layer conv2: kernel must
// be ..." if a field is wrong, and the errors of WithNumbers.
Result<model::Network> LoadNetwork(const std::string& path, const DataNumbers& numbers = {});

// The same from memory; `name` stands for the file in messages.
Result<model::Network> ParseNetwork(const std::string& text, const std::string& name,
                                    const DataNumbers& numbers = {});

// Whether the file can be read and has the word `vocabulary` for a number.
bool FileNeedsVocabulary(const std::string& path);

// The same network as text protobuf in one line, without the file's comments.
std::string NetworkText(const model::Network& network);

// The same for people, a layer a line, under comment lines.
std::string NetworkFileText(const model::Network& network,
                            const std::vector<std::string>& comments);

// InvalidArgument "layer conv2: kernel must be 1 to 64, is 0".
Result<Graph> PlanNetwork(const model::Network& network);

}  // namespace kumo
