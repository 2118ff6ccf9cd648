// Causality check: whether a network of positions can continue a sequence, so that no position's
// values depend on later positions.
//
// A pure function; thread-safe.
#pragma once

#include "common/base/status.h"
#include "models/graph/graph.h"

namespace kumo {

// Checks a network in use: no dropout, running statistics. Positions are the last axis of every
// value. InvalidArgument names the first layer whose spec looks_ahead(): a position's result may
// depend on later positions.
Status CheckCausal(const Graph& graph);

}  // namespace kumo
