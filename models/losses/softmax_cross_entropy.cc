#include "models/losses/loss.h"

namespace kumo {

Result<LossPlan> PlanSoftmaxCrossEntropy(const model::Layer&, const Shape& scores) {
  return LossPlan{scores.size(), SoftmaxCrossEntropySpec{scores}};
}

}  // namespace kumo
