// Losses at the end of a network: a LossPlan is made from a layer's settings and the shapes of its
// inputs. A loss compares its inputs with fields of the samples, its targets. CONTRIBUTING.md says
// how to add a loss.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/metric_list.h"
#include "models/layers/losses.h"
#include "models/tensor/tensor.h"
#include "proto/model.pb.h"

namespace kumo {

// Target: a field of the samples that a loss reads.
struct Target {
  std::string field = kLabelField;
  // Integers in [0, classes); 0: any numbers.
  int64_t classes = 0;
  std::vector<int64_t> extents = {};  // of a list: an entry's extents
  bool list = false;
  bool shares = false;         // a share of each class (float32, classes x extents) is accepted too
  int64_t ignored = -1;        // of classes: a number beside them, which counts nothing; -1: none
  bool probabilities = false;  // numbers lie between 0 and 1

  NumberType type() const { return classes > 0 ? NumberType::kInt32 : NumberType::kFloat32; }
  // "10 classes", "10 classes at each of 64", "numbers, 2x3", "a list of numbers, 4";
  // "2 classes, ignored 255", "numbers from 0 to 1, 7"
  std::string ToString() const;
  bool operator==(const Target&) const = default;
};

// Target of the classes that scores (classes x positions) have at each position.
Target ClassesAtPositions(const Shape& scores, int ignored);
// A loss's field ignored_label; -1 if it is not given.
Result<int> IgnoredLabel(bool given, int label);

struct LossPlan {
  std::vector<Target> targets;  // at least one; the first has the classes that the network tells
  LossSpec spec;
  MetricList metrics = {};  // of the sums that the op adds up; the loss is the first
  std::string detail = {};  // for people
};

struct LossKind {
  model::Layer::KindCase kind;
  const char* name;  // as in the network file
  const char* also;  // its names in other programs, separated by blanks: for advice only
  Result<LossPlan> (*plan)(const model::Layer& layer, std::span<const Shape> inputs);
  int fewest_inputs = 1;
  int most_inputs = 1;
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
