// The CUDA backend's ops, one file each; only cuda_backend.cc makes them. Activations are as
// ActivationShape of kernels.h says. All of them queue their work on the engine's stream; what
// fails is the engine's to say. The engine outlives the ops.
#pragma once

#include <memory>
#include <optional>

#include "models/backend/backend.h"
#include "models/backend/cuda/engine.h"

namespace kumo::cuda {

std::unique_ptr<Op> MakeConvolution(Engine& engine, const ConvolutionSpec& spec,
                                    const std::optional<PoolingSpec>& pool, int max_batch);
std::unique_ptr<Op> MakeFullyConnected(Engine& engine, const FullyConnectedSpec& spec,
                                       int max_batch);
std::unique_ptr<Op> MakeFlatten(Engine& engine, const Shape& shape);
std::unique_ptr<Op> MakeMaxPooling(Engine& engine, const PoolingSpec& spec);
std::unique_ptr<Op> MakeAveragePooling(Engine& engine, const PoolingSpec& spec);
std::unique_ptr<Op> MakeActivation(Engine& engine, Activation activation, const Shape& shape);
std::unique_ptr<Op> MakeDropout(Engine& engine, const DropoutSpec& spec);
std::unique_ptr<Op> MakeBatchNormalisation(Engine& engine, const BatchNormalisationSpec& spec,
                                           int max_batch);
std::unique_ptr<LossOp> MakeSoftmaxCrossEntropy(Engine& engine, const Shape& shape, int max_batch);

}  // namespace kumo::cuda
