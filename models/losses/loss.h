// What ends a net: scores and labels become a loss. What a new one takes: CONTRIBUTING.md, "A
// loss".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/metric_list.h"
#include "models/losses/losses.h"
#include "models/tensor.h"
#include "proto/model.pb.h"

namespace kumo {

// What is known of a sample.
struct Label {
  // Whole numbers in [0, classes); 0: any numbers.
  int64_t classes = 0;
  std::vector<int64_t> extents = {};

  NumberType type() const { return classes > 0 ? NumberType::kInt32 : NumberType::kFloat32; }
  bool operator==(const Label&) const = default;
};

struct LossPlan {
  Label label;
  LossSpec spec;
  MetricList metrics = {};  // whose sums the op adds up, the loss being the first
  std::string detail = {};  // for people
};

struct LossKind {
  model::Layer::KindCase kind;
  const char* name;  // as in the network file
  const char* also;  // what others call it, separated by blanks: for advice only
  Result<LossPlan> (*plan)(const model::Layer& layer, const Shape& scores);
};

// The losses of a network file that become one op, defined in its plan.cc: `Name`Layers().
#define KUMO_DECLARE_LOSSES(Name) std::span<const LossKind> Name##Layers();
KUMO_LOSSES(KUMO_DECLARE_LOSSES)
#undef KUMO_DECLARE_LOSSES

// All losses, in the order of KUMO_LOSSES.
std::span<const LossKind> LossKinds();
// The list's entry of a kind; null when there is none.
const LossKind* FindLossKind(model::Layer::KindCase kind);

}  // namespace kumo
