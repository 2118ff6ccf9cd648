// Load balancing: the coordinator's policy that gives partitions to workers. Each function changes
// or judges a lease table so that the longest round becomes as short as possible.
//
// Functions; LoadBalancer is a value. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/transport/message.h"
#include "server/protocol/lease_table.h"

namespace kumo {

// Taker: a worker that may hold leases.
struct Taker {
  PeerName worker;
  double block_ms = 0;  // time for one block; 0: not known yet
};

// Leases orphans to the takers that will be done with them first.
void AssignOrphans(const std::vector<Taker>& takers, int64_t oldest_open, LeaseTable* table);
// Moves partitions at version `from`, as few as possible: away from workers that are no takers,
// and from slow workers to fast ones until the longest round is as short as it can be. Without
// takers, partitions become orphans.
void SpreadLeases(const std::vector<Taker>& takers, int64_t from, LeaseTable* table);
// Gives `missing`, the partitions that a round waits for, to takers that are idle, one to each.
// Returns whether there was one.
bool AssignHelpers(const std::vector<int>& missing, int64_t round, const std::vector<Taker>& takers,
                   LeaseTable* table);
// Expected time of a round in milliseconds if every taker were as fast as the median; 0 if no
// time is known.
double TypicalRound(const LeaseTable& table, const std::vector<Taker>& takers);
// The longest round now over the longest round after SpreadLeases; 1 if that would change nothing.
double Imbalance(const LeaseTable& table, const std::vector<Taker>& takers);

// Load balancer: partitions and expected round time of each taker, while partitions are given away
// or moved.
class LoadBalancer {
 public:
  LoadBalancer(const std::vector<Taker>& takers, const LeaseTable& table);

  bool empty() const { return loads_.empty(); }
  bool Has(const PeerName& worker) const;
  // In milliseconds.
  double LongestRound() const;

  // Gives one partition more to the worker that will be done with it first; returns the worker.
  // Requires !empty().
  PeerName Give();

  // Moves one partition away from the worker that the others wait for. Returns false if that would
  // not make the longest round shorter. Requires !empty().
  bool Move(PeerName* from, PeerName* to);

 private:
  struct Load {
    PeerName worker;
    double block_ms = 1;
    int64_t partitions = 0;
    double Round(int64_t more) const { return block_ms * static_cast<double>(partitions + more); }
  };
  std::vector<Load>::iterator Slowest();
  std::vector<Load>::iterator FirstWithOneMore();

  std::vector<Load> loads_;
};

}  // namespace kumo
