// Rare ways (common/job/buggify.h) of a simulated job: its seed draws some of them, and each of
// those is taken now and then.
#pragma once

#include <array>
#include <cstdint>

#include "common/base/rng.h"
#include "common/job/buggify.h"

namespace kumo::sim {

constexpr int kRareWays = static_cast<int>(RareWay::kCount);
const char* NameOf(RareWay way);

// While the object lives, Buggify asks it, in this thread; the newest object counts.
class RareWays final : public RareWayChooser {
 public:
  struct Count {
    int64_t reached = 0, taken = 0;
  };

  explicit RareWays(uint64_t seed);
  ~RareWays();
  RareWays(const RareWays&) = delete;
  RareWays& operator=(const RareWays&) = delete;

  bool Takes(RareWay way) override;
  const std::array<Count, kRareWays>& counts() const { return counts_; }

 private:
  Rng rng_;
  std::array<bool, kRareWays> open_{};
  std::array<Count, kRareWays> counts_{};
  RareWayChooser* const former_;
};

}  // namespace kumo::sim
