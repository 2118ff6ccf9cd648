// What each manifest of a job says of the job itself: its settings, its network and data, and where
// its weights came from.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
#include "server/protocol/actions.h"

namespace kumo {

class Manifests {
 public:
  // private_disks: its files say which positions they are about.
  explicit Manifests(const JobIdentity& identity, bool private_disks = false)
      : identity_(identity), private_disks_(private_disks) {}

  // The job's spec has become known.
  void OnSpec(const ShardMap& map, const JobSpec& spec);
  // The job goes on from a checkpoint, or from its beginning.
  void StartFrom(const std::optional<checkpoint::Manifest>& restored);
  // It goes on from what a former coordinator has left.
  void TakeOver(const wire::CoordinatorState& state);
  // A worker has brought the initial weights, which in part are another job's; the first counts.
  void OnOrigin(const checkpoint::Origin& origin, StepContext* context);

  // Whose weights the job began with, where it is known.
  const std::optional<checkpoint::Origin>& origin() const { return origin_; }
  // The servers that hold chunks, and so have a file in each checkpoint.
  const std::set<int>& holders() const { return holders_; }
  // What a manifest says of a server's file, of which the server has said its size and checksum.
  checkpoint::File FileOf(int server, uint32_t generation, const wire::SavedFile& saved) const;
  // Fills in a complete checkpoint's manifest. Requires OnSpec. restored: the checkpoint that the
  // generation started from.
  void Complete(uint32_t generation, const std::optional<checkpoint::Manifest>& restored,
                const JobPlan& plan, checkpoint::Manifest* manifest) const;

 private:
  JobIdentity identity_;
  JobSpec spec_;
  bool private_disks_;
  ShardMap map_;
  std::set<int> holders_;
  std::optional<checkpoint::Origin> origin_;
};

}  // namespace kumo
