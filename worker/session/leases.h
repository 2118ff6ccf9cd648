// Leases of a worker, as the coordinator's orders grant them: which partitions it computes, from
// which round and until when.
//
// Leases may move, or the job may stop, after the last round that starts from version v; this is
// announced with the weights of version v (OnVersion). The leases after that round are known when
// orders for the version that it makes have arrived.
//
// Owned by a Rounds; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_plan.h"
#include "proto/wire.pb.h"
#include "worker/session/open_requests.h"

namespace kumo {

struct Lease {
  int64_t from = 0;          // as ordered
  int64_t round = 0;         // the next round to compute
  int64_t until = 0;         // end of the rounds to compute; the maximum if this is no helper
  bool handed_over = false;  // the carried state is still on its way from a live worker
  bool adopted = false;      // the carried state is here
  int64_t evaluated = -1;    // the version whose evaluation is acknowledged
};

class Leases {
 public:
  // plan must outlive this object.
  explicit Leases(const JobPlan* plan) : plan_(plan) {}

  struct Changes {
    std::vector<int> lost;      // partitions that this worker no longer computes
    std::vector<int> orphaned;  // partitions whose former worker died before its hand-over
  };
  // Applies the orders for a version. Ignores orders that newer ones have overtaken, and leases of
  // partitions or rounds that the job does not have.
  Changes OnOrders(int64_t version, const wire::Orders& orders);
  // The worker joins a coordinator again: that coordinator may be one version behind and has
  // released no worker.
  void ForgetOrders();
  // The generation or the membership has ended.
  void Forget();

  // The weights of a version are installed. stop, move: the job stops, or leases move, after the
  // last round that starts from them.
  void OnVersion(int64_t version, bool stop, bool move);
  // Rounds before `round` have closed without this worker.
  void SkipTo(int64_t round);

  // The smallest round to compute; the maximum of int64_t if there is none.
  int64_t TargetRound() const;
  // The job stops before this round.
  bool Halted(int64_t round) const { return halted_at_ >= 0 && round >= halted_at_; }
  // True while the leases of this round are not known yet.
  bool WaitsForOrders(int64_t round) const {
    return round >= orders_due_ && orders_at_ < orders_due_;
  }

  const std::map<int, Lease>& all() const { return leases_; }  // by partition
  // Null if the partition is not leased here.
  Lease* Find(int partition);
  // True if this worker was told to leave and the coordinator wants nothing more from it.
  bool released() const { return released_; }
  const std::string& job_waits_for() const { return job_waits_for_; }

  // Adds to a HELLO the leases, and the states of former partitions that are still being handed
  // over. owed: the partition and version of a state that is still computed.
  void Claim(const OpenRequests& requests, const std::optional<std::pair<int, int64_t>>& owed,
             wire::Hello* hello) const;

 private:
  const JobPlan* plan_;
  std::map<int, Lease> leases_;
  int64_t halted_at_ = -1;  // the version at which the job stops
  // Leases may move at orders_due_. orders_at_: the version of the newest orders.
  int64_t orders_due_ = -1, orders_at_ = -1;
  bool released_ = false;      // from the newest orders
  std::string job_waits_for_;  // from the newest orders
};

}  // namespace kumo
