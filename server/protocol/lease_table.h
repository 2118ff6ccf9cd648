// Who computes which partition, from which round on: the table behind the coordinator's orders.
//
// A partition changes hands in one of two ways. Where its worker is lost, another one takes it over
// at the oldest round that may still be open, without what it carried. Where a worker joins or
// leaves, partitions move at a version whose round was saved: the worker that had it (`before`)
// puts what the partition carries on the servers, and the next one fetches it there. With numbers:
// docs/internals/leases.md.
//
// The other servers have the table too, as server 0 has told them: contributions count only from
// whom it names.
//
// Owned by Leasing, and on other servers by the Follower; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "common/transport/message.h"
#include "proto/wire.pb.h"

namespace kumo {

class LeaseTable {
 public:
  struct Lease {
    PeerName worker;   // empty: nobody's
    int64_t from = 0;  // the first round that the worker computes
    // A live worker that had the partition, and puts what it carries at version `from` on the
    // servers; or empty.
    PeerName before;
    bool stored = false;  // what it carries at version `from` is on the servers
    // A worker that was told to leave, and had the partition: it finishes the block that it has
    // half pushed, if any; or empty.
    PeerName finishes = {};
  };
  // A worker that may hold leases.
  struct Taker {
    PeerName worker;
    double block_ms = 0;  // how long it takes for a block; 0: not known yet
  };

  // A worker that computes a straggler's partition too, for one round.
  struct Helper {
    PeerName worker;
    int64_t round = 0;
  };

  // Nobody has a lease.
  explicit LeaseTable(int partitions) : leases_(partitions) {}

  const std::vector<Lease>& leases() const { return leases_; }       // by partition
  const std::map<int, Helper>& helpers() const { return helpers_; }  // by partition
  int64_t Count(const PeerName& worker) const;
  bool HasOrphans() const { return Count("") > 0; }
  // Whether it was for this worker to compute the partition's block of the round. Rounds before a
  // lease of which nobody knows who had the partition before have closed, or their worker is lost
  // with a server 0: anybody may.
  bool MayContribute(const PeerName& worker, int partition, int64_t round) const;

  // As the other servers are told, and back; without what only server 0 has a use for.
  wire::LeaseTable ToWire() const;
  static LeaseTable FromWire(const wire::LeaseTable& table);

  // Contiguous runs of partitions from round `from` on, in the order of `workers` (at least one).
  void Begin(const std::vector<PeerName>& workers, int64_t from);

  // A worker has the partition from `from` on, as it says itself; where two say so, the later lease
  // counts.
  void Claim(int partition, const PeerName& worker, int64_t from);
  // What a claimed partition carries as of `version` is still on its way from `before`.
  void ClaimHandOver(int partition, const PeerName& before, int64_t version);

  // A worker is gone without a word: its partitions are nobody's, and what it had not handed over
  // is lost. True when there was anything of the kind.
  bool Lose(const PeerName& worker, int64_t oldest_open);
  // The same for a worker that was told to leave, and is still there.
  void LetGo(const PeerName& worker, int64_t oldest_open);
  // A worker has left that had put everything on the servers.
  void HandedOver(const PeerName& worker);
  // The round that began with `from` has closed: what moved at that version has arrived.
  void Settle(int64_t version);

  // Partitions of nobody go to who will be done with them first.
  void LeaseOrphans(const std::vector<Taker>& takers, int64_t oldest_open);
  // Moves partitions at version `from`, as few as possible: off workers that are no takers, and
  // from slow workers to fast ones until the longest round time is as short as it can be. They
  // become nobody's where there are no takers.
  void Spread(const std::vector<Taker>& takers, int64_t from);
  // `missing` are the partitions that a round waits for: each goes to a taker that waits for others
  // only, one to each. True when there was one.
  bool Help(const std::vector<int>& missing, int64_t round, const std::vector<Taker>& takers);
  // How long a round should take, in milliseconds, if everybody were as fast as the median; 0 as
  // long as nobody's time is known.
  double TypicalRound(const std::vector<Taker>& takers) const;
  // The longest round time now over the one that Spread would make; 1 where it would do nothing.
  double Imbalance(const std::vector<Taker>& takers) const;

 private:
  // Partition, round, worker.
  using Helped = std::tuple<int, int64_t, PeerName>;

  std::vector<Lease> leases_;
  std::map<int, Helper> helpers_;
  // Who helps, or has helped in a round that may still be open somewhere. Scenario: worker B helps
  // A with a partition, chunk 0 closes with what B has sent, the partition moves to B, and A drops
  // its block: the other chunks have nothing but B's.
  std::set<Helped> helped_;
};

// Two tables that say the same have the same hash.
uint64_t HashOf(const wire::LeaseTable& table);

}  // namespace kumo
