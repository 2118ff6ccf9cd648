#include "models/layers/plans.h"

namespace kumo {
namespace {

// A place in the window must fit a byte.
constexpr int kMostKernel = 15;

Result<PoolingSpec> ReadSpec(const model::Pooling& settings, const Shape& shape) {
  KUMO_RETURN_IF_ERROR(CheckRange("kernel", settings.kernel(), 1, kMostKernel));
  KUMO_RETURN_IF_ERROR(CheckRange("stride", settings.stride(), 0, 64));
  KUMO_RETURN_IF_ERROR(CheckRange("pad", settings.pad(), 0, settings.kernel() - 1));
  PoolingSpec spec;
  spec.input = shape;
  spec.kernel = settings.kernel();
  spec.stride = settings.stride() == 0 ? settings.kernel() : settings.stride();
  spec.pad = settings.pad();
  if (spec.kernel > shape.height + 2 * spec.pad || spec.kernel > shape.width + 2 * spec.pad) {
    return InvalidArgument("kernel must fit the input " + shape.ToString() + " with pad " +
                           std::to_string(spec.pad) + ", is " + std::to_string(spec.kernel));
  }
  // A window that starts in the padding behind the input would hold no number at all.
  const Shape out = spec.output();
  if ((out.height - 1) * spec.stride - spec.pad >= shape.height ||
      (out.width - 1) * spec.stride - spec.pad >= shape.width) {
    return InvalidArgument("pad must leave part of the input in the last window, is " +
                           std::to_string(spec.pad));
  }
  return spec;
}

LayerPlan PlanOf(const PoolingSpec& spec) {
  LayerPlan plan;
  plan.output = spec.output();
  plan.detail = std::to_string(spec.kernel) + "x" + std::to_string(spec.kernel) + ", stride " +
                std::to_string(spec.stride);
  if (spec.pad > 0) plan.detail += ", pad " + std::to_string(spec.pad);
  return plan;
}

}  // namespace

Result<LayerPlan> PlanMaxPooling(const LayerInput& input) {
  KUMO_ASSIGN_OR_RETURN(const PoolingSpec spec, ReadSpec(input.layer.max_pooling(), input.shape));
  LayerPlan plan = PlanOf(spec);
  plan.max_pooling = spec;
  plan.make_op = [spec](Backend& backend, int max_batch) {
    return backend.MakeMaxPooling(spec, max_batch);
  };
  return plan;
}

Result<LayerPlan> PlanAveragePooling(const LayerInput& input) {
  KUMO_ASSIGN_OR_RETURN(const PoolingSpec spec,
                        ReadSpec(input.layer.average_pooling(), input.shape));
  LayerPlan plan = PlanOf(spec);
  plan.make_op = [spec](Backend& backend, int max_batch) {
    return backend.MakeAveragePooling(spec, max_batch);
  };
  return plan;
}

}  // namespace kumo
