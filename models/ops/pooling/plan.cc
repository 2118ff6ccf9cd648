#include <algorithm>
#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/pooling/spec.h"

namespace kumo {
namespace {

// A place in the window must fit a byte.
constexpr int kMostPoolingKernel = 15;

// Whether a window lies beyond the padded input in part.
bool ReachesBeyond(const PoolingSpec& spec) {
  const Shape out = spec.output();
  const auto reaches = [&](int64_t windows, int kernel, int64_t size) {
    return (windows - 1) * spec.stride + kernel > size + 2 * spec.pad;
  };
  return reaches(out.height(), spec.kernel_height, spec.input.height()) ||
         reaches(out.width(), spec.kernel_width, spec.input.width());
}

// A window that is rounded up to has a row and a column of the padded input at the least.
Status CheckPoolingKernel(const PoolingSpec& spec) {
  const int64_t beyond = spec.ceil ? spec.stride - 1 : 0;
  const int64_t most = std::min(spec.input.height(), spec.input.width()) + 2 * spec.pad + beyond;
  if (spec.kernel_height <= most) return OkStatus();
  std::string room = "kernel must fit the input " + spec.input.ToString() + " with pad " +
                     std::to_string(spec.pad);
  if (spec.ceil) room += " and, by ceil_mode, " + std::to_string(beyond) + " beyond it";
  return InvalidArgument(room + ", is " + std::to_string(spec.kernel_height));
}

Result<LayerPlan> PlanPooling(PoolingSpec::Kind kind, const model::Pooling& settings,
                              const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  const Shape& shape = input.shape();
  KUMO_RETURN_IF_ERROR(CheckRange("kernel", settings.kernel(), 1, kMostPoolingKernel));
  KUMO_RETURN_IF_ERROR(CheckRange("stride", settings.stride(), 0, 64));
  KUMO_RETURN_IF_ERROR(CheckRange("pad", settings.pad(), 0, settings.kernel() - 1));
  PoolingSpec spec;
  spec.kind = kind;
  spec.input = shape;
  const int kernel = settings.kernel();
  spec.kernel_height = spec.kernel_width = kernel;
  spec.stride = settings.stride() == 0 ? kernel : settings.stride();
  spec.pad = settings.pad();
  spec.ceil = settings.ceil_mode();
  KUMO_RETURN_IF_ERROR(CheckPoolingKernel(spec));
  // If the windows end with the input, rounding up makes no difference.
  spec.ceil = spec.ceil && ReachesBeyond(spec);
  // A window that starts in the padding behind the input would hold no number at all.
  const Shape out = spec.output();
  if ((out.height() - 1) * spec.stride - spec.pad >= shape.height() ||
      (out.width() - 1) * spec.stride - spec.pad >= shape.width()) {
    return InvalidArgument("pad must leave part of the input in the last window, is " +
                           std::to_string(spec.pad));
  }
  LayerPlan plan;
  plan.spec = spec;
  plan.output = out;
  plan.detail = std::to_string(kernel) + "x" + std::to_string(kernel) + ", stride " +
                std::to_string(spec.stride);
  if (spec.pad > 0) plan.detail += ", pad " + std::to_string(spec.pad);
  if (settings.ceil_mode()) plan.detail += ", ceil mode";
  return plan;
}

Result<LayerPlan> PlanMaxPooling(const LayerInput& input) {
  return PlanPooling(PoolingSpec::Kind::kMax, input.layer.max_pooling(), input);
}

Result<LayerPlan> PlanAveragePooling(const LayerInput& input) {
  return PlanPooling(PoolingSpec::Kind::kAverage, input.layer.average_pooling(), input);
}

Result<LayerPlan> PlanGlobalAveragePooling(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  const Shape& shape = input.shape();
  PoolingSpec spec;
  spec.kind = PoolingSpec::Kind::kAverage;
  spec.input = shape;
  spec.kernel_height = static_cast<int>(shape.height());
  spec.kernel_width = static_cast<int>(shape.width());
  LayerPlan plan;
  plan.spec = spec;
  plan.output = {shape.channels()};
  return plan;
}

}  // namespace

std::span<const LayerKind> PoolingLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kMaxPooling, "max_pooling", "max_pool max_pool2d max_pooling2d pooling pool",
       PlanMaxPooling},
      {model::Layer::kAveragePooling, "average_pooling",
       "avg_pool avg_pool2d avg_pooling average_pooling2d mean_pooling pooling pool",
       PlanAveragePooling},
      {model::Layer::kGlobalAveragePooling, "global_average_pooling",
       "global_avg_pool global_avg_pooling adaptive_avg_pool2d global_pooling gap",
       PlanGlobalAveragePooling},
  };
  return kLayers;
}

}  // namespace kumo
