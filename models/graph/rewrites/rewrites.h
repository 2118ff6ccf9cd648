// Rewrites of a graph to one that gives the same bits with fewer passes over memory: one file each.
// The last one is for a graph in use alone, and gives other bits.
#pragma once

#include <functional>
#include <vector>

#include "models/graph/graph.h"

namespace kumo {

// Max pooling runs before a non-decreasing activation in front of it: max f(x) = f(max x), and the
// activation has fewer numbers to work on.
void PoolBeforeActivation(Graph* graph);

// A convolution pools its own result, where windows neither overlap nor are padded nor reach
// beyond its border, and the device can.
void PoolInConvolution(const std::function<bool(const ConvolutionSpec&)>& fuses, Graph* graph);

// A fully connected layer or a batch normalisation applies the activation that follows it, where
// the device can.
void FuseActivation(const std::function<bool(Activation)>& fuses, Graph* graph);

// Flattening is there in front of those who read a sample as one vector, channels before the plane,
// and only where numbers move for that on the device.
void Flattening(const std::function<bool(const Shape&)>& moves, Graph* graph);

// A convolution or a fully connected layer does what the batch normalisation behind it does with
// running statistics, where nobody else reads its result and both have tensors of their own: with
// f = scale / sqrt(variance + epsilon) of the channel, its weights become f weight, and its bias,
// which it then has, f (bias - mean) + shift. Not for training. tensors: the numbers of each of
// graph->parameters, of which those are left that somebody uses. How many normalisations went.
int FoldBatchNormalisation(Graph* graph, std::vector<std::vector<float>>* tensors);

}  // namespace kumo
