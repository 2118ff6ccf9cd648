#include "models/layers/loss.h"

#include <vector>

#include "models/layers/kind_list.h"

namespace kumo {

std::string Target::ToString() const {
  const std::string of = ExtentsText(extents);
  const std::string what = list ? "a list of " : "";
  if (classes == 0) return what + (probabilities ? "numbers from 0 to 1, " : "numbers, ") + of;
  return what + std::to_string(classes) + " classes" +
         (extents.empty() ? "" : " at each of " + of) +
         (ignored < 0 ? "" : ", ignored " + std::to_string(ignored));
}

Target ClassesAtPositions(const Shape& scores, int ignored) {
  Target target = {.classes = scores.channels(), .shares = true, .ignored = ignored};
  target.extents.assign(scores.extents().begin() + 1, scores.extents().end());
  return target;
}

Result<int> IgnoredLabel(bool given, int label) {
  constexpr int kMostLabel = 65535;
  if (!given) return -1;
  if (label >= 0 && label <= kMostLabel) return label;
  return InvalidArgument("ignored_label must be 0 to " + std::to_string(kMostLabel) + ", is " +
                         std::to_string(label));
}

std::span<const LossKind> LossKinds() {
#define KUMO_LAYERS(Name) Name##Layers(),
  static const std::vector<LossKind> kinds = JoinKinds<LossKind>({KUMO_LOSSES(KUMO_LAYERS)});
#undef KUMO_LAYERS
  return kinds;
}

const LossKind* FindLossKind(model::Layer::KindCase kind) { return FindKind(LossKinds(), kind); }

}  // namespace kumo
