#include "models/layers/layer.h"
#include "models/ops/dropout/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanDropout(const LayerInput& input) {
  const float ratio = input.layer.dropout().ratio();
  KUMO_RETURN_IF_ERROR(CheckDropout("ratio", ratio));
  return PlanOfSameShape(input, DropoutSpec{input.shape(), ratio, input.index},
                         "ratio " + RatioText(ratio));
}

}  // namespace

std::span<const LayerKind> DropoutLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kDropout, "dropout", "drop", PlanDropout},
  };
  return kLayers;
}

}  // namespace kumo
