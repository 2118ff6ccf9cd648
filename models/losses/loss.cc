#include "models/losses/loss.h"

#include <vector>

#include "models/kind_list.h"

namespace kumo {

std::string Target::ToString() const {
  const std::string of = ExtentsText(extents);
  const std::string what = list ? "a list of " : "";
  if (classes == 0) return what + "numbers, " + of;
  return what + std::to_string(classes) + " classes" + (extents.empty() ? "" : " at each of " + of);
}

std::span<const LossKind> LossKinds() {
#define KUMO_LAYERS(Name) Name##Layers(),
  static const std::vector<LossKind> kinds = JoinKinds<LossKind>({KUMO_LOSSES(KUMO_LAYERS)});
#undef KUMO_LAYERS
  return kinds;
}

const LossKind* FindLossKind(model::Layer::KindCase kind) { return FindKind(LossKinds(), kind); }

}  // namespace kumo
