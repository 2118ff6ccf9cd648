#include "models/losses/loss.h"

namespace kumo {
namespace {

// The one list of losses.
constexpr LossKind kLossKinds[] = {
    {model::Layer::kSoftmaxCrossEntropy, "softmax_cross_entropy",
     "softmax cross_entropy softmax_output softmax_with_loss cross_entropy_loss nll_loss "
     "log_softmax "
     "categorical_cross_entropy sparse_categorical_cross_entropy loss criterion",
     PlanSoftmaxCrossEntropy},
    {model::Layer::kMeanSquaredError, "mean_squared_error",
     "mse mse_loss l2_loss squared_error square_error linear_regression_output euclidean_loss",
     PlanMeanSquaredError},
    {model::Layer::kHuber, "huber", "huber_loss smooth_l1 smooth_l1_loss l1_loss", PlanHuber},
};

}  // namespace

std::span<const LossKind> LossKinds() { return kLossKinds; }

const LossKind* FindLossKind(model::Layer::KindCase kind) {
  for (const LossKind& entry : kLossKinds) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

}  // namespace kumo
