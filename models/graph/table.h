// Table of a graph for people. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "models/graph/graph.h"

namespace kumo {

// A line for each layer of the file: name, kind, the layers that it reads unless it reads the layer
// before, the output's shape, numbers of parameters, products of one sample forward, and the length
// of its output, which bytes_of says. Lines begin with two blanks and have at most `columns`; 0: no
// limit.
std::string TableOf(const Graph& graph, const std::function<int64_t(const Shape&)>& bytes_of,
                    int columns);

}  // namespace kumo
