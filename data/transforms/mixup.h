// Mixup: each training image becomes a random weighted mean of itself and another image, and its
// label the same mean of both labels (data.mixup): Zhang et al. 2018, "mixup: Beyond empirical risk
// minimization". Training labels are then a share per class; evaluated labels stay single classes.
// Other pictures and numbers of a sample are averaged likewise; masks and lists are refused.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "data/transforms/transform.h"

namespace kumo {

// The draw for a sample.
struct Mixture {
  int64_t partner = 0;  // any sample of the set
  // Weight of the sample itself, out of kWhole; the partner has the rest. Distributed as
  // Beta(alpha, alpha).
  int64_t weight = 0;

  static constexpr int64_t kWhole = int64_t{1} << 16;
  bool operator==(const Mixture&) const = default;
};
Mixture DrawMixture(double alpha, int64_t samples, const SampleKey& key);

Result<std::unique_ptr<const Transform>> MakeMixup(const TransformRequest& request);

}  // namespace kumo
