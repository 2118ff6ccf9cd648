// Whether a network of positions can go on with a sequence: no position's values depend on what
// stands behind it.
//
// A pure function; thread-safe.
#pragma once

#include "common/base/status.h"
#include "models/graph/graph.h"

namespace kumo {

// As the network is in use: no dropout, running statistics. Positions are the last axis of every
// value. InvalidArgument names the first layer that looks at what comes after a position, or mixes
// positions in a way that is not known not to.
Status CheckCausal(const Graph& graph);

}  // namespace kumo
