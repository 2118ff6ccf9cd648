// Rewrites of a graph to one that gives the same bits with fewer passes over memory: one file each.
#pragma once

#include <functional>

#include "models/graph/graph.h"

namespace kumo {

// Max pooling runs before a non-decreasing activation in front of it: max f(x) = f(max x), and the
// activation has fewer numbers to work on.
void PoolBeforeActivation(Graph* graph);

// A convolution pools its own result, where windows neither overlap nor are padded nor reach
// beyond its border.
void PoolInConvolution(Graph* graph);

// A fully connected layer or a batch normalisation applies the activation that follows it, where
// the device can.
void FuseActivation(const std::function<bool(Activation)>& fuses, Graph* graph);

// Flattening is there in front of those who read a sample as one vector, channels before the plane,
// and only where numbers move for that on the device.
void Flattening(const std::function<bool(const Shape&)>& moves, Graph* graph);

}  // namespace kumo
