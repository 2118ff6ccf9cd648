// Each training image becomes a mean, with random weights, of itself and another one, and its label
// the two labels with these weights (data.mixup): Zhang et al. 2018, "mixup: Beyond empirical risk
// minimization". Labels are then a share of each class; those to evaluate on are all of one.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "data/transforms/transform.h"

namespace kumo {

// What is mixed into a sample.
struct Mixture {
  int64_t partner = 0;  // any sample of the set
  // Of the sample itself, of kWhole; the rest is the partner's. From the distribution Beta(alpha,
  // alpha).
  int64_t weight = 0;

  static constexpr int64_t kWhole = int64_t{1} << 16;
  bool operator==(const Mixture&) const = default;
};
Mixture DrawMixture(double alpha, int64_t samples, const SampleKey& key);

Result<std::unique_ptr<const Transform>> MakeMixup(const TransformRequest& request);

}  // namespace kumo
