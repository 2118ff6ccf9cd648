// The CUDA backend's ops, one file each; only cuda_backend.cc makes them. Activations are as
// ActivationShape of kernels.h says. All of them queue their work on the engine's stream; what
// fails is the engine's to say. The engine outlives the ops.
#pragma once

#include <memory>

#include "models/backend/cuda/engine.h"
#include "models/backend/op.h"

namespace kumo::cuda {

// The backend's table: an op of each spec.
std::unique_ptr<Op> MakeOp(Engine& engine, const ConvolutionSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const FullyConnectedSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const PoolingSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const ActivationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const FlattenSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const DropoutSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const BatchNormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const GroupNormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const L2NormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const PositionNormalisationSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const EmbeddingSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const PositionalEmbeddingSpec& spec, int max_batch);
// InvalidArgument for heads of more channels than the kernels take.
Result<std::unique_ptr<Op>> MakeOp(Engine& engine, const AttentionSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const RearrangeSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const AddSpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const MultiplySpec& spec, int max_batch);
std::unique_ptr<Op> MakeOp(Engine& engine, const ConcatSpec& spec, int max_batch);
std::unique_ptr<LossOp> MakeLoss(Engine& engine, const SoftmaxCrossEntropySpec& spec,
                                 int max_batch);
std::unique_ptr<LossOp> MakeLoss(Engine& engine, const DifferenceLossSpec& spec, int max_batch);
// Of what is not above.
template <typename Spec>
Status MakeOp(Engine&, const Spec&, int) {
  return LacksOp("cuda", Spec::kName);
}

}  // namespace kumo::cuda
