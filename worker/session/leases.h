// Leases as the worker that holds them knows them: which partitions it computes, from which round
// and until when, as the coordinator's orders say.
//
// Leases may move, and the job may stop, at a version that is said with the weights of the one
// before (OnVersion). What is leased from there on is known when orders of that version have come.
//
// Owned by a Rounds; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/job/job_plan.h"
#include "proto/wire.pb.h"
#include "worker/session/open_requests.h"

namespace kumo {

struct Lease {
  int64_t from = 0;          // as ordered
  int64_t round = 0;         // next to compute
  int64_t until = 0;         // computes rounds before this; the last of all where it is no helper
  bool handed_over = false;  // what it carries is still on its way from a live worker
  bool adopted = false;      // has what it carries
  int64_t evaluated = -1;    // version whose evaluation is acknowledged
};

class Leases {
 public:
  // plan is borrowed for life.
  explicit Leases(const JobPlan* plan) : plan_(plan) {}

  struct Changes {
    std::vector<int> lost;      // partitions that are no longer ours
    std::vector<int> orphaned;  // whose former worker was to hand over, and has died
  };
  // Orders as of a version. Those that were overtaken change nothing, nor do leases of partitions
  // and rounds that the job has not.
  Changes OnOrders(int64_t version, const wire::Orders& orders);
  // A coordinator is joined again: it may be a version behind, and has released nobody.
  void ForgetOrders();
  // A generation, or a membership, is over.
  void Forget();

  // The weights of a version are installed. stop: the job stops after the round that starts from
  // them; move: leases move then.
  void OnVersion(int64_t version, bool stop, bool move);
  // Rounds before this one have closed without us.
  void SkipTo(int64_t round);

  // The smallest round that is to be computed; far away where none is.
  int64_t TargetRound() const;
  // The job stops before this round.
  bool Halted(int64_t round) const { return halted_at_ >= 0 && round >= halted_at_; }
  // Whose the partitions are in this round is not known yet.
  bool WaitsForOrders(int64_t round) const {
    return round >= orders_due_ && orders_at_ < orders_due_;
  }

  const std::map<int, Lease>& all() const { return leases_; }  // by partition
  // Null where there is none.
  Lease* Find(int partition);
  // This worker was told to leave, and the coordinator has nothing more for it.
  bool released() const { return released_; }
  const std::string& job_waits_for() const { return job_waits_for_; }

  // What a hello says of them, and of what is on its way of partitions that were here.
  void Claim(const OpenRequests& requests, wire::Hello* hello) const;

 private:
  const JobPlan* plan_;
  std::map<int, Lease> leases_;
  int64_t halted_at_ = -1;  // the version that the job stops at
  // Leases may have moved at `orders_due_`. orders_at_: the version of the newest orders.
  int64_t orders_due_ = -1, orders_at_ = -1;
  bool released_ = false;      // as the newest orders say
  std::string job_waits_for_;  // likewise
};

}  // namespace kumo
