// Which partitions are whose when a coordinator takes the place of one that has died, and the other
// servers still have what the job is about: workers say so in their hellos.
//
// Partitions are with the workers that say so; those that nobody has claimed in time are lost with
// their workers. Until then there are no orders: who has leases goes on with them. A claim of
// rounds that the job cannot have come to is none.
//
// Owned by Leasing; one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "server/coordinator/member_table.h"
#include "server/protocol/lease_table.h"

namespace kumo {

class LeaseRecovery {
 public:
  struct Claimed {
    LeaseTable leases;
    bool complete = false;  // each partition is somebody's, with what it carries
  };

  // Workers that took part are asked, for so long.
  void AskUntil(TimeUs time) { until_ = time; }
  // Nobody is asked any more.
  void Forget() { until_ = 0; }
  bool pending() const { return until_ > 0; }
  // Chunk 0 is back, at `version`.
  void TakeOver(int64_t version) { taken_over_at_ = version; }

  // The leases of `partitions` as workers say they are, of those that took part `since` that
  // generation; none as long as they are incomplete and the time is not over. carries_state: a
  // claim of an earlier version is late, since the job has gone on without what was carried.
  std::optional<Claimed> Settle(const MemberTable& members, int partitions, uint32_t since,
                                bool carries_state, TimeUs now);

 private:
  Claimed Take(const MemberTable& members, int partitions, uint32_t since,
               bool carries_state) const;

  TimeUs until_ = 0;            // 0: nobody is asked
  int64_t taken_over_at_ = -1;  // chunk 0's version then; -1: not known yet
};

}  // namespace kumo
