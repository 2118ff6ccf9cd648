#include <cstdint>

#include "models/layers/plans.h"

namespace kumo {

Result<LayerPlan> PlanFullyConnected(const LayerInput& input) {
  const model::FullyConnected& settings = input.layer.fully_connected();
  const std::string& name = input.layer.name();
  const int64_t inputs = input.shape().size();
  KUMO_RETURN_IF_ERROR(
      CheckRange("outputs", settings.outputs(), 1, std::max<int64_t>(1, kMostNumbers / inputs)));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.weight()).WithContext("weight"));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.bias()).WithContext("bias"));

  const FullyConnectedSpec spec = {inputs, settings.outputs(), !settings.no_bias(), {}};
  const Fans fans = {inputs, spec.outputs};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = {spec.outputs};
  plan.parameters.push_back(MakeParameter(name, "weight", {spec.outputs, inputs}, Segment::kDecayed,
                                          settings.weight(), LeCunNormalInitialiser(), fans));
  if (spec.bias) {
    plan.parameters.push_back(MakeParameter(name, "bias", {spec.outputs}, Segment::kUndecayed,
                                            settings.bias(), ConstantInitialiser(0), fans));
  }
  return plan;
}

}  // namespace kumo
