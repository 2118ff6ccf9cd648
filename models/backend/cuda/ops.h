// Table of the CUDA ops: the functions that ops/*/cuda.* and losses/*/cuda.* define for each op and
// loss.
//
// Activations are laid out as ActivationShape (kernels.h) says. Ops queue their work on the
// engine's stream; the engine remembers a failure. The engine outlives the ops.
#pragma once

#include <memory>

#include "models/backend/cuda/cuda_engine.h"
#include "models/backend/op.h"

namespace kumo::cuda {

// The op of a spec for minibatches of up to max_batch samples. InvalidArgument if CUDA has none.
#define KUMO_DECLARE_OP(Name) \
  Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const Name##Spec& spec, int max_batch);
KUMO_OPS(KUMO_DECLARE_OP)
#undef KUMO_DECLARE_OP

#define KUMO_DECLARE_LOSS(Name) \
  std::unique_ptr<LossOp> MakeLoss(CudaEngine& engine, const Name##Spec& spec, int max_batch);
KUMO_LOSSES(KUMO_DECLARE_LOSS)
#undef KUMO_DECLARE_LOSS

}  // namespace kumo::cuda
