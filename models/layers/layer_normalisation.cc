#include "models/layers/plans.h"

namespace kumo {

Result<LayerPlan> PlanLayerNormalisation(const LayerInput& input) {
  const model::LayerNormalisation& settings = input.layer.layer_normalisation();
  const Shape& shape = input.shape();
  KUMO_RETURN_IF_ERROR(CheckEpsilon(settings.epsilon(), "1e-5"));
  if (shape.size() < 2) {
    return InvalidArgument("the input must have more than one number, is " + shape.ToString());
  }
  GroupNormalisationSpec spec;
  spec.shape = shape;
  spec.elementwise = true;
  if (settings.epsilon() > 0.0f) spec.epsilon = settings.epsilon();

  LayerPlan plan;
  plan.spec = spec;
  plan.output = shape;
  std::vector<int64_t> tensor_shape = {shape.channels()};
  if (shape.plane() > 1) tensor_shape = {shape.channels(), shape.height(), shape.width()};
  const auto add = [&](const char* tensor, float start) {
    plan.parameters.push_back(MakeParameter(input.layer.name(), tensor, tensor_shape,
                                            Segment::kUndecayed, {}, ConstantInitialiser(start),
                                            {}));
  };
  add("scale", 1);
  add("shift", 0);
  return plan;
}

}  // namespace kumo
