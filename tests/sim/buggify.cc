#include "tests/sim/buggify.h"

#include <iterator>
#include <utility>

#include <glog/logging.h>

namespace kumo::sim {
namespace {

constexpr double kOpen = 0.3;  // share of the jobs in which a way is taken at all

struct Way {
  const char* name;
  double chance;        // each time, where it is
  int64_t most = 1000;  // times in a job: one whose workers are given up again and again never ends
};
// In the order of RareWay.
constexpr Way kWays[] = {
    {"RequestRepeatedAtOnce", 0.2},
    {"RequestRepeatedLate", 0.1},
    {"RequestWindowFull", 0.3},
    {"HeartbeatSkipped", 0.3},
    {"GoesOnLate", 0.1},
    {"HelloIgnored", 0.3},
    {"ReportSkipped", 0.3},
    {"SaveRefused", 0.5},
    {"StateOverlooked", 0.1},
    {"AnswerDropped", 0.05},
    {"PushNotAcknowledged", 0.05},
    {"ReplicaSentTwice", 0.2},
    {"ReplicaWindowFull", 0.3},
    {"ReplicaAckLost", 0.1},
    {"OrdersTwice", 0.2},
    {"OrdersLost", 0.2},
    {"LeasesMove", 0.3},
    {"StragglersHelped", 0.2},
    {"SuspectedEarly", 0.002, 3},
};
static_assert(std::size(kWays) == kRareWays);

}  // namespace

const char* NameOf(RareWay way) { return kWays[static_cast<int>(way)].name; }

RareWays::RareWays(uint64_t seed)
    : rng_(seed, RngPurpose::kSimulation, /*a=*/1), former_(std::exchange(rare_way_chooser, this)) {
  for (int i = 0; i < kRareWays; ++i) {
    open_[i] = rng_.NextUniform() < kOpen;
    VLOG_IF(1, open_[i]) << "rare way: " << kWays[i].name;
  }
}

RareWays::~RareWays() { rare_way_chooser = former_; }

bool RareWays::Takes(RareWay way) {
  const int index = static_cast<int>(way);
  Count& count = counts_[index];
  ++count.reached;
  if (!open_[index] || count.taken == kWays[index].most) return false;
  if (rng_.NextUniform() >= kWays[index].chance) return false;
  ++count.taken;
  return true;
}

}  // namespace kumo::sim
