// Losses at the end of a network: a LossPlan is made from a layer's settings and the shape of the
// scores. CONTRIBUTING.md says how to add a loss.
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

// Label of a sample.
struct Label {
  // Integers in [0, classes); 0: any numbers.
  int64_t classes = 0;
  std::vector<int64_t> extents = {};

  NumberType type() const { return classes > 0 ? NumberType::kInt32 : NumberType::kFloat32; }
  bool operator==(const Label&) const = default;
};

struct LossPlan {
  Label label;
  LossSpec spec;
  MetricList metrics = {};  // of the sums that the op adds up; the loss is the first
  std::string detail = {};  // for people
};

struct LossKind {
  model::Layer::KindCase kind;
  const char* name;  // as in the network file
  const char* also;  // its names in other programs, separated by blanks: for advice only
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
