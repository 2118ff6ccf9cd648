// How many partitions each worker has that may take some, and how long its rounds are for it: what
// a lease table goes by when it gives partitions away and moves them.
//
// A value; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/transport/message.h"
#include "server/protocol/lease_table.h"

namespace kumo {

class LoadBalancer {
 public:
  LoadBalancer(const std::vector<LeaseTable::Taker>& takers, const LeaseTable& table) {
    // One that has not computed anything yet counts like the others.
    double known_ms = 0;
    int known = 0;
    for (const auto& taker : takers) {
      if (taker.block_ms > 0) known_ms += taker.block_ms, ++known;
    }
    const double otherwise = known > 0 ? known_ms / known : 1;
    for (const auto& taker : takers) {
      loads_.push_back({taker.worker, taker.block_ms > 0 ? taker.block_ms : otherwise,
                        table.Count(taker.worker)});
    }
  }

  bool empty() const { return loads_.empty(); }
  bool Has(const PeerName& worker) const {
    return std::any_of(loads_.begin(), loads_.end(),
                       [&](const Load& load) { return load.worker == worker; });
  }
  double LongestRound() const { return loads_.empty() ? 0 : Slowest().Round(0); }

  // The worker that is done first with one partition more, which it now has.
  PeerName Give() {
    Load& first = *std::min_element(loads_.begin(), loads_.end(), [](const Load& a, const Load& b) {
      return a.Round(1) < b.Round(1);
    });
    ++first.partitions;
    return first.worker;
  }

  // Moves one partition from the worker that the others wait for. False where that would not make
  // the longest round shorter.
  bool Move(PeerName* from, PeerName* to) {
    Load& slowest = Slowest();
    Load& first = *std::min_element(loads_.begin(), loads_.end(), [](const Load& a, const Load& b) {
      return a.Round(1) < b.Round(1);
    });
    // A hair's breadth is rounding, not speed.
    if (slowest.partitions == 0 || first.Round(1) >= slowest.Round(0) * (1 - 1e-9)) return false;
    --slowest.partitions;
    ++first.partitions;
    *from = slowest.worker;
    *to = first.worker;
    return true;
  }

 private:
  struct Load {
    PeerName worker;
    double block_ms = 1;
    int64_t partitions = 0;
    double Round(int64_t more) const { return block_ms * static_cast<double>(partitions + more); }
  };
  const Load& Slowest() const { return const_cast<LoadBalancer*>(this)->Slowest(); }
  Load& Slowest() {
    return *std::max_element(loads_.begin(), loads_.end(),
                             [](const Load& a, const Load& b) { return a.Round(0) < b.Round(0); });
  }

  std::vector<Load> loads_;
};

}  // namespace kumo
