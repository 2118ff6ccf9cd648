// Rewrites of a graph, one file each: the rewritten graph gives the same bits with fewer passes
// over memory. The last rewrite is only for a graph in use, and gives other bits.
#pragma once

#include <functional>
#include <vector>

#include "models/graph/graph.h"

namespace kumo {

// Max pooling runs before a non-decreasing activation in front of it: max f(x) = f(max x), and the
// activation has fewer numbers to work on.
void PoolBeforeActivation(Graph* graph);

// A convolution pools its own result, if the windows neither overlap nor are padded nor reach
// beyond the border, and the device can do so.
void PoolInConvolution(const std::function<bool(const ConvolutionSpec&)>& fuses, Graph* graph);

// A batch normalisation applies the activation that follows it, if the device can do so.
void FuseActivation(const std::function<bool(Activation)>& fuses, Graph* graph);

// Adds a flattening in front of each node that reads a sample as one vector, channels before the
// plane, if elements move for that on the device.
void Flattening(const std::function<bool(const Shape&)>& moves, Graph* graph);

// A convolution or a fully connected layer takes over the batch normalisation behind it with its
// running statistics, if no other node reads its result and both have tensors of their own: with f
// = scale / sqrt(variance + epsilon) of the channel, its weights become f weight, and its bias,
// which it then has, f (bias - mean) + shift. Not for training. tensors: the numbers of each of
// graph->parameters; unused tensors are removed. Returns the number of removed normalisations.
int FoldBatchNormalisation(Graph* graph, std::vector<std::vector<float>>* tensors);

}  // namespace kumo
