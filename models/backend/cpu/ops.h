// Table of the CPU's ops: the functions that ops/*/cpu.cc and losses/*/cpu.cc define for each op
// and loss.
#pragma once

#include <memory>

#include "models/backend/cpu/cpu_engine.h"
#include "models/backend/cpu/layout.h"
#include "models/backend/op.h"

namespace kumo::cpu {

// The op of a spec for minibatches of up to max_batch samples. InvalidArgument if the CPU has none.
#define KUMO_DECLARE_OP(Name) \
  Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const Name##Spec& spec, int max_batch);
KUMO_OPS(KUMO_DECLARE_OP)
#undef KUMO_DECLARE_OP

// Padding of a position's samples that the op needs; a net has the largest that any of its ops
// needs. An op that needs kNone takes any number of lanes, one that needs kFew takes 4, 8 and
// multiples of 16.
#define KUMO_DECLARE_PADDING(Name) Padding PaddingOf(const Name##Spec& spec);
KUMO_OPS(KUMO_DECLARE_PADDING)
#undef KUMO_DECLARE_PADDING

// OpFactory::FusesPooling (ops/convolution/cpu.cc).
bool FusesPooling(const ConvolutionSpec& spec);

#define KUMO_DECLARE_LOSS(Name) \
  std::unique_ptr<LossOp> MakeLoss(CpuEngine& engine, const Name##Spec& spec, int max_batch);
KUMO_LOSSES(KUMO_DECLARE_LOSS)
#undef KUMO_DECLARE_LOSS

}  // namespace kumo::cpu
