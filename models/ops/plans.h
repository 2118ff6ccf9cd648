// The registry's view of the layer files: one function each, told about in layer.h.
#pragma once

#include "models/ops/layer.h"

namespace kumo {

Result<LayerPlan> PlanFullyConnected(const LayerInput& input);
Result<LayerPlan> PlanConvolution(const LayerInput& input);
Result<LayerPlan> PlanMaxPooling(const LayerInput& input);
Result<LayerPlan> PlanAveragePooling(const LayerInput& input);
Result<LayerPlan> PlanGlobalAveragePooling(const LayerInput& input);
Result<LayerPlan> PlanRelu(const LayerInput& input);
Result<LayerPlan> PlanLeakyRelu(const LayerInput& input);
Result<LayerPlan> PlanGelu(const LayerInput& input);
Result<LayerPlan> PlanSilu(const LayerInput& input);
Result<LayerPlan> PlanTanh(const LayerInput& input);
Result<LayerPlan> PlanSigmoid(const LayerInput& input);
Result<LayerPlan> PlanDropout(const LayerInput& input);
Result<LayerPlan> PlanBatchNormalisation(const LayerInput& input);
Result<LayerPlan> PlanGroupNormalisation(const LayerInput& input);
Result<LayerPlan> PlanLayerNormalisation(const LayerInput& input);
Result<LayerPlan> PlanL2Normalisation(const LayerInput& input);
Result<LayerPlan> PlanEmbedding(const LayerInput& input);
Result<LayerPlan> PlanPositionalEmbedding(const LayerInput& input);
Result<LayerPlan> PlanAttention(const LayerInput& input);
Result<LayerPlan> PlanReshape(const LayerInput& input);
Result<LayerPlan> PlanPermute(const LayerInput& input);
Result<LayerPlan> PlanSlice(const LayerInput& input);
Result<LayerPlan> PlanFlatten(const LayerInput& input);
Result<LayerPlan> PlanAdd(const LayerInput& input);
Result<LayerPlan> PlanMultiply(const LayerInput& input);
Result<LayerPlan> PlanConcat(const LayerInput& input);

}  // namespace kumo
