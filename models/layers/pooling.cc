#include "models/layers/plans.h"

namespace kumo {
namespace {

// A place in the window must fit a byte.
constexpr int kMostKernel = 15;

Result<LayerPlan> PlanPooling(PoolingSpec::Kind kind, const model::Pooling& settings,
                              const Shape& shape) {
  KUMO_RETURN_IF_ERROR(CheckRange("kernel", settings.kernel(), 1, kMostKernel));
  KUMO_RETURN_IF_ERROR(CheckRange("stride", settings.stride(), 0, 64));
  KUMO_RETURN_IF_ERROR(CheckRange("pad", settings.pad(), 0, settings.kernel() - 1));
  PoolingSpec spec;
  spec.kind = kind;
  spec.input = shape;
  const int kernel = settings.kernel();
  spec.kernel_height = spec.kernel_width = kernel;
  spec.stride = settings.stride() == 0 ? kernel : settings.stride();
  spec.pad = settings.pad();
  if (kernel > shape.height + 2 * spec.pad || kernel > shape.width + 2 * spec.pad) {
    return InvalidArgument("kernel must fit the input " + shape.ToString() + " with pad " +
                           std::to_string(spec.pad) + ", is " + std::to_string(kernel));
  }
  // A window that starts in the padding behind the input would hold no number at all.
  const Shape out = spec.output();
  if ((out.height - 1) * spec.stride - spec.pad >= shape.height ||
      (out.width - 1) * spec.stride - spec.pad >= shape.width) {
    return InvalidArgument("pad must leave part of the input in the last window, is " +
                           std::to_string(spec.pad));
  }
  LayerPlan plan;
  plan.spec = spec;
  plan.output = out;
  plan.detail = std::to_string(kernel) + "x" + std::to_string(kernel) + ", stride " +
                std::to_string(spec.stride);
  if (spec.pad > 0) plan.detail += ", pad " + std::to_string(spec.pad);
  return plan;
}

}  // namespace

Result<LayerPlan> PlanMaxPooling(const LayerInput& input) {
  return PlanPooling(PoolingSpec::Kind::kMax, input.layer.max_pooling(), input.shape());
}

Result<LayerPlan> PlanAveragePooling(const LayerInput& input) {
  return PlanPooling(PoolingSpec::Kind::kAverage, input.layer.average_pooling(), input.shape());
}

}  // namespace kumo
