#include <algorithm>
#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/embedding/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanEmbedding(const LayerInput& input) {
  const model::Embedding& settings = input.layer.embedding();
  KUMO_RETURN_IF_ERROR(CheckRange("outputs", settings.outputs(), 1,
                                  std::max<int64_t>(1, kMostNumbers / input.vocabulary)));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.weight()).WithContext("weight"));
  const EmbeddingSpec spec = {input.vocabulary, settings.outputs(), input.shape().size()};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output();
  plan.detail = "of " + std::to_string(spec.vocabulary);
  plan.parameters.push_back(MakeParameter(
      input.layer.name(), "weight", {spec.vocabulary, spec.outputs}, TensorKind::kWeight,
      settings.weight(), NormalInitialiser(1), {1, spec.outputs}));
  return plan;
}

}  // namespace

std::span<const LayerKind> EmbeddingLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kEmbedding, "embedding", "embed token_embedding lookup_table wte",
       PlanEmbedding, 1, 1, true},
  };
  return kLayers;
}

}  // namespace kumo
