#include "models/losses/loss.h"

namespace kumo {

Result<LossPlan> PlanSoftmaxCrossEntropy(const model::Layer&, const Shape& scores) {
  LossPlan plan;
  plan.classes = scores.size();
  plan.make_op = [scores](Backend& backend, int max_batch) {
    return backend.MakeSoftmaxCrossEntropy(scores, max_batch);
  };
  return plan;
}

}  // namespace kumo
