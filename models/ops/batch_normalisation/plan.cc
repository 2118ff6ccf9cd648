#include "models/ops/batch_normalisation/spec.h"
#include "models/ops/layer.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanBatchNormalisation(const LayerInput& input) {
  const model::BatchNormalisation& settings = input.layer.batch_normalisation();
  KUMO_RETURN_IF_ERROR(CheckEpsilon(settings.epsilon(), "1e-5"));
  if (!(settings.momentum() >= 0.0f && settings.momentum() < 1.0f)) {
    return InvalidArgument("momentum must be at least 0 (0 for 0.9) and less than 1, is " +
                           std::to_string(settings.momentum()));
  }
  BatchNormalisationSpec spec;
  spec.shape = input.shape();
  if (settings.epsilon() > 0.0f) spec.epsilon = settings.epsilon();
  if (settings.momentum() > 0.0f) spec.momentum = settings.momentum();

  LayerPlan plan;
  plan.spec = spec;
  plan.output = input.shape();
  const auto add = [&](const char* tensor, Segment segment, float start) {
    plan.parameters.push_back(MakeParameter(input.layer.name(), tensor, {input.shape().channels()},
                                            segment, {}, ConstantInitialiser(start), {}));
  };
  add("scale", Segment::kUndecayed, 1);
  add("shift", Segment::kUndecayed, 0);
  add("running_mean", Segment::kStatistics, 0);
  add("running_variance", Segment::kStatistics, 1);
  return plan;
}

}  // namespace

std::span<const LayerKind> BatchNormalisationLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kBatchNormalisation, "batch_normalisation",
       "batch_normalization batch_norm batch_norm2d bn", PlanBatchNormalisation},
  };
  return kLayers;
}

}  // namespace kumo
