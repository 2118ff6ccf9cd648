#include "models/losses/loss.h"

#include <vector>

namespace kumo {

std::span<const LossKind> LossKinds() {
  static const std::vector<LossKind> kinds = [] {
    std::vector<LossKind> all;
    const auto append = [&all](std::span<const LossKind> of_loss) {
      all.insert(all.end(), of_loss.begin(), of_loss.end());
    };
#define KUMO_APPEND(Name) append(Name##Layers());
    KUMO_LOSSES(KUMO_APPEND)
#undef KUMO_APPEND
    return all;
  }();
  return kinds;
}

const LossKind* FindLossKind(model::Layer::KindCase kind) {
  for (const LossKind& entry : LossKinds()) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

}  // namespace kumo
