// List of losses: the folders of models/losses/.
//
// The folder of a loss `Xxx` is losses/xxx/. It holds spec.h (XxxSpec), plan.cc (XxxLayers(): the
// layers of a network file that become this loss), cpu.cc and cuda.cu (MakeLoss(XxxSpec) of each
// backend). A new loss needs its folder, and an include and its line here.
#pragma once

#include "models/layers/kind_list.h"
#include "models/losses/binary_cross_entropy/spec.h"
#include "models/losses/dice/spec.h"
#include "models/losses/difference_loss/spec.h"
#include "models/losses/multibox/spec.h"
#include "models/losses/softmax_cross_entropy/spec.h"

#define KUMO_LOSSES(X)   \
  X(SoftmaxCrossEntropy) \
  X(BinaryCrossEntropy)  \
  X(Dice)                \
  X(DifferenceLoss)      \
  X(Multibox)

namespace kumo {

#define KUMO_SPEC(Name) , Name##Spec
using LossSpec = VariantOf<void KUMO_LOSSES(KUMO_SPEC)>::type;
#undef KUMO_SPEC

}  // namespace kumo
