#include "models/layers/layer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/layers/kind_list.h"

namespace kumo {

std::span<const LayerKind> LayerKinds() {
#define KUMO_LAYERS(Name) Name##Layers(),
  static const std::vector<LayerKind> kinds = JoinKinds<LayerKind>({KUMO_OPS(KUMO_LAYERS)});
#undef KUMO_LAYERS
  return kinds;
}

const LayerKind* FindLayerKind(model::Layer::KindCase kind) { return FindKind(LayerKinds(), kind); }

Status CheckRange(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return OkStatus();
  return InvalidArgument(std::string(field) + " must be " + std::to_string(low) + " to " +
                         std::to_string(high) + ", is " + std::to_string(value));
}

Status CheckSampleSize(const char* what, const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 28;
  int64_t numbers = 1;
  for (const int64_t extent : shape.extents()) {
    if (extent > kMost / numbers) {
      return InvalidArgument(std::string(what) + " must have at most 2^28 numbers, is " +
                             shape.ToString());
    }
    numbers *= std::max<int64_t>(extent, 1);
  }
  return OkStatus();
}

Status CheckDropout(const char* field, float ratio) {
  if (ratio >= 0.0f && ratio < 1.0f) return OkStatus();
  return InvalidArgument(std::string(field) + " must be at least 0 and less than 1, is " +
                         std::to_string(ratio));
}

std::string RatioText(float ratio) { return std::to_string(ratio).substr(0, 4); }

Status CheckEpsilon(float epsilon, const char* standard) {
  if (epsilon >= 0.0f && std::isfinite(epsilon)) return OkStatus();
  return InvalidArgument(std::string("epsilon must be a positive number, or 0 for ") + standard +
                         ", is " + std::to_string(epsilon));
}

Status CheckSameShape(const LayerInput& input) {
  for (const Shape& shape : input.shapes) {
    if (shape != input.shape()) {
      return InvalidArgument("inputs must have one shape, are " + input.shape().ToString() +
                             " and " + shape.ToString());
    }
  }
  return OkStatus();
}

Status CheckImage(const LayerInput& input) {
  if (input.shape().rank() <= 3) return OkStatus();
  return InvalidArgument("the input must be an image, channels x height x width, is " +
                         input.shape().ToString());
}

Status CheckSequence(const LayerInput& input) {
  if (input.shape().rank() <= 2) return OkStatus();
  return InvalidArgument("the input must be a sequence, channels x length, is " +
                         input.shape().ToString());
}

Status CheckSamePlane(const LayerInput& input) {
  for (const Shape& shape : input.shapes) {
    if (shape.WithChannels(1) != input.shape().WithChannels(1)) {
      return InvalidArgument("inputs must have one height and width, are " +
                             input.shape().ToString() + " and " + shape.ToString());
    }
  }
  return OkStatus();
}

namespace {

Segment SegmentOf(TensorKind kind) {
  switch (kind) {
    case TensorKind::kWeight:
      return Segment::kDecayed;
    case TensorKind::kBias:
    case TensorKind::kScale:
      return Segment::kUndecayed;
    case TensorKind::kStatistic:
      break;
  }
  return Segment::kStatistics;
}

}  // namespace

Parameter MakeParameter(const std::string& layer, const char* tensor, std::vector<int64_t> shape,
                        TensorKind kind, const model::Initialiser& initialiser,
                        const model::Initialiser& fallback, Fans fans) {
  const bool given = initialiser.kind_case() != model::Initialiser::KIND_NOT_SET;
  return {kind,
          {layer + "." + tensor, std::move(shape), SegmentOf(kind)},
          given ? initialiser : fallback,
          fans};
}

void AddConstant(const LayerInput& input, const char* tensor, std::vector<int64_t> shape,
                 TensorKind kind, float start, LayerPlan* plan) {
  plan->parameters.push_back(MakeParameter(input.layer.name(), tensor, std::move(shape), kind, {},
                                           ConstantInitialiser(start), {}));
}

LayerPlan PlanOfSameShape(const LayerInput& input, OpSpec spec, std::string detail) {
  return {std::move(spec), input.shape(), std::move(detail), {}};
}

model::Initialiser ConstantInitialiser(float value) {
  model::Initialiser initialiser;
  initialiser.mutable_constant()->set_value(value);
  return initialiser;
}

model::Initialiser NormalInitialiser(float deviation) {
  model::Initialiser initialiser;
  initialiser.mutable_normal()->set_deviation(deviation);
  return initialiser;
}

model::Initialiser LeCunNormalInitialiser() {
  model::Initialiser initialiser;
  initialiser.mutable_lecun_normal();
  return initialiser;
}

}  // namespace kumo
