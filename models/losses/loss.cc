#include "models/losses/loss.h"

#include <vector>

#include "models/kind_list.h"

namespace kumo {

std::span<const LossKind> LossKinds() {
#define KUMO_LAYERS(Name) Name##Layers(),
  static const std::vector<LossKind> kinds = JoinKinds<LossKind>({KUMO_LOSSES(KUMO_LAYERS)});
#undef KUMO_LAYERS
  return kinds;
}

const LossKind* FindLossKind(model::Layer::KindCase kind) { return FindKind(LossKinds(), kind); }

}  // namespace kumo
