// Lease table: which worker computes which partition, and from which round.
//
// A partition changes hands in one of two ways.
// - Its worker is lost: another worker takes the partition over at the oldest round that may still
//   be open. The state that the partition carried is lost.
// - A worker joins or leaves: partitions move at a version whose round was saved. The worker that
//   had the partition (`before`) puts its state on the servers, and the next worker fetches it.
// docs/internals/leases.md has an example with numbers.
//
// Server 0 owns the table and tells it to the other servers, since a shard counts a contribution
// only if its sender holds the lease.
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
    PeerName worker;   // empty: the partition is an orphan
    int64_t from = 0;  // the first round that the worker computes
    // A live worker that had the partition, and puts its state at version `from` on the servers;
    // or empty.
    PeerName before;
    bool stored = false;  // the partition's state at version `from` is on the servers
    // A worker that was told to leave, had the partition, and finishes a block of it that it has
    // pushed in part; or empty.
    PeerName finishes = {};
  };
  // Helper: a worker that computes a straggler's partition too, for one round.
  struct Helper {
    PeerName worker;
    int64_t round = 0;
  };

  // All partitions are orphans.
  explicit LeaseTable(int partitions) : leases_(partitions) {}

  const std::vector<Lease>& leases() const { return leases_; }       // by partition
  const std::map<int, Helper>& helpers() const { return helpers_; }  // by partition
  // Partitions of a worker.
  int64_t Count(const PeerName& worker) const;
  bool HasOrphans() const { return Count("") > 0; }
  // Whether the partition's block of the round was leased to this worker. Any worker may contribute
  // to rounds before a lease whose former holder is not known: those rounds have closed, or their
  // worker was lost together with a server 0.
  bool MayContribute(const PeerName& worker, int partition, int64_t round) const;

  // The table for the other servers, without the fields that only server 0 needs; and the inverse.
  wire::LeaseTable ToWire() const;
  static LeaseTable FromWire(const wire::LeaseTable& table);

  // Leases contiguous runs of partitions, from round `from`, in the order of `workers` (at least
  // one).
  void Begin(const std::vector<PeerName>& workers, int64_t from);

  // A worker claims the partition from `from` on; of two claims the later lease counts.
  void Claim(int partition, const PeerName& worker, int64_t from);
  // The state of a claimed partition as of `version` is still on its way from `before`.
  void ClaimHandOver(int partition, const PeerName& before, int64_t version);

  // A worker is gone without a hand-over: its partitions become orphans, and states that it had not
  // handed over are lost. Returns whether it had any of the two.
  bool Lose(const PeerName& worker, int64_t oldest_open);
  // The same for a worker that was told to leave and is still there: it may finish its block.
  void LetGo(const PeerName& worker, int64_t oldest_open);
  // A worker has left after it had put all states on the servers.
  void HandedOver(const PeerName& worker);
  // Chunk 0 has reached `version`, and no other chunk has an earlier round open than oldest_open:
  // states that moved before that round have arrived, and all contributions of their former
  // workers.
  void Settle(int64_t version, int64_t oldest_open);

  // An orphan goes to a worker.
  void LeaseOrphan(int partition, const PeerName& worker, int64_t oldest_open);
  // A partition moves at version `from`, with its state, to another worker; "": becomes an orphan.
  void Move(int partition, const PeerName& to, int64_t from);
  // A partition that has just moved, and whose state is still on its way, goes to another worker
  // instead.
  void MoveOn(int partition, const PeerName& to);
  // A worker computes a straggler's partition too, in this round.
  void AddHelper(int partition, const PeerName& worker, int64_t round);

 private:
  // Partition, round, worker.
  using Helped = std::tuple<int, int64_t, PeerName>;

  std::vector<Lease> leases_;
  std::map<int, Helper> helpers_;
  // Workers that help, or have helped in a round that may still be open on some shard. Scenario:
  // worker B helps A with a partition, chunk 0 closes with the contribution of B, the partition
  // moves to B, and A drops its block: the other chunks have only the contribution of B.
  std::set<Helped> helped_;
};

// Hash of a table, by which a server says which table it has.
uint64_t HashOf(const wire::LeaseTable& table);

}  // namespace kumo
