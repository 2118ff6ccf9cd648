#include "models/layers/layer.h"
#include "models/ops/positional_embedding/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanPositionalEmbedding(const LayerInput& input) {
  const model::PositionalEmbedding& settings = input.layer.positional_embedding();
  KUMO_RETURN_IF_ERROR(CheckSequence(input));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.weight()).WithContext("weight"));
  const Shape& shape = input.shape();
  LayerPlan plan = PlanOfSameShape(input, PositionalEmbeddingSpec{shape});
  plan.parameters.push_back(MakeParameter(
      input.layer.name(), "weight", {shape.plane(), shape.channels()}, TensorKind::kWeight,
      settings.weight(), NormalInitialiser(1), {1, shape.channels()}));
  return plan;
}

}  // namespace

std::span<const LayerKind> PositionalEmbeddingLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kPositionalEmbedding, "positional_embedding",
       "position_embedding positional_encoding wpe", PlanPositionalEmbedding},
  };
  return kLayers;
}

}  // namespace kumo
