// What ends a net: scores and labels become a loss. What a new one takes: docs/design.md, "Adding
// something".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/metric_list.h"
#include "models/op_spec.h"
#include "proto/model.pb.h"

namespace kumo {

struct LossPlan {
  int64_t classes = 0;  // labels lie in [0, classes)
  LossSpec spec;
  MetricList metrics = {};                  // whose sums the op adds up
  std::string detail = {};                  // for people
  std::vector<int64_t> label_extents = {};  // of a sample's labels
};

struct LossKind {
  model::Layer::KindCase kind;
  const char* name;  // as in the network file
  const char* also;  // what others call it, separated by blanks: for advice only
  Result<LossPlan> (*plan)(const model::Layer& layer, const Shape& scores);
};

std::span<const LossKind> LossKinds();
// The list's entry of a kind; null when there is none.
const LossKind* FindLossKind(model::Layer::KindCase kind);

Result<LossPlan> PlanSoftmaxCrossEntropy(const model::Layer& layer, const Shape& scores);

}  // namespace kumo
