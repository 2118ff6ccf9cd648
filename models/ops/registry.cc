#include <cmath>
#include <cstdint>

#include "models/ops/layer.h"
#include "models/ops/plans.h"

namespace kumo {
namespace {

constexpr int kMostInputs = 1000;

// The one list of layers.
constexpr LayerKind kLayerKinds[] = {
    {model::Layer::kFullyConnected, "fully_connected",
     "dense linear fc inner_product affine gemm mat_mul", PlanFullyConnected},
    {model::Layer::kConvolution, "convolution", "conv conv2d convolution2d conv_2d",
     PlanConvolution},
    {model::Layer::kMaxPooling, "max_pooling", "max_pool max_pool2d max_pooling2d pooling pool",
     PlanMaxPooling},
    {model::Layer::kAveragePooling, "average_pooling",
     "avg_pool avg_pool2d avg_pooling average_pooling2d mean_pooling pooling pool",
     PlanAveragePooling},
    {model::Layer::kGlobalAveragePooling, "global_average_pooling",
     "global_avg_pool global_avg_pooling adaptive_avg_pool2d global_pooling gap",
     PlanGlobalAveragePooling},
    {model::Layer::kRelu, "relu", "rectifier rectified_linear activation", PlanRelu},
    {model::Layer::kLeakyRelu, "leaky_relu", "lrelu leaky activation", PlanLeakyRelu},
    {model::Layer::kGelu, "gelu", "gaussian_error_linear_unit gelu_tanh gelu_new activation",
     PlanGelu},
    {model::Layer::kSilu, "silu", "swish swish1 activation", PlanSilu},
    {model::Layer::kTanh, "tanh", "hyperbolic_tangent activation", PlanTanh},
    {model::Layer::kSigmoid, "sigmoid", "logistic activation", PlanSigmoid},
    {model::Layer::kDropout, "dropout", "drop", PlanDropout},
    {model::Layer::kBatchNormalisation, "batch_normalisation",
     "batch_normalization batch_norm batch_norm2d bn", PlanBatchNormalisation},
    {model::Layer::kGroupNormalisation, "group_normalisation",
     "group_normalization group_norm gn instance_norm instance_norm2d", PlanGroupNormalisation},
    {model::Layer::kLayerNormalisation, "layer_normalisation", "layer_normalization layer_norm ln",
     PlanLayerNormalisation},
    {model::Layer::kL2Normalisation, "l2_normalisation",
     "l2_normalization l2_norm l2_normalize normalize", PlanL2Normalisation},
    {model::Layer::kEmbedding, "embedding", "embed token_embedding lookup_table wte", PlanEmbedding,
     1, 1, true},
    {model::Layer::kPositionalEmbedding, "positional_embedding",
     "position_embedding positional_encoding wpe", PlanPositionalEmbedding},
    {model::Layer::kAttention, "attention",
     "self_attention multi_head_attention multihead_attention scaled_dot_product_attention mha",
     PlanAttention},
    {model::Layer::kFlatten, "flatten", "view", PlanFlatten},
    {model::Layer::kReshape, "reshape", "view", PlanReshape},
    {model::Layer::kPermute, "permute", "transpose swap_axes", PlanPermute},
    {model::Layer::kSlice, "slice", "crop narrow split strided_slice", PlanSlice},
    {model::Layer::kAdd, "add", "sum plus residual elementwise_add eltwise shortcut", PlanAdd, 2,
     kMostInputs},
    {model::Layer::kMultiply, "multiply", "mul product times elementwise_mul gate", PlanMultiply, 2,
     2},
    {model::Layer::kConcat, "concat", "concatenate cat join concat_layer depth_concat", PlanConcat,
     2, kMostInputs},
};

}  // namespace

std::span<const LayerKind> LayerKinds() { return kLayerKinds; }

const LayerKind* FindLayerKind(model::Layer::KindCase kind) {
  for (const LayerKind& entry : kLayerKinds) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

Status CheckRange(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return OkStatus();
  return InvalidArgument(std::string(field) + " must be " + std::to_string(low) + " to " +
                         std::to_string(high) + ", is " + std::to_string(value));
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

Parameter MakeParameter(const std::string& layer, const char* tensor, std::vector<int64_t> shape,
                        Segment segment, const model::Initialiser& initialiser,
                        const model::Initialiser& fallback, Fans fans) {
  const bool given = initialiser.kind_case() != model::Initialiser::KIND_NOT_SET;
  return {{layer + "." + tensor, std::move(shape), segment}, given ? initialiser : fallback, fans};
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
