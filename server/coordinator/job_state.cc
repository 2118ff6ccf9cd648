#include "server/coordinator/job_state.h"

#include <algorithm>
#include <utility>

namespace kumo {

JobState::JobState(CoordinatorSettings of, std::optional<checkpoint::Manifest> restored, TimeUs now)
    : settings(std::move(of)),
      folder(settings.folder, settings.output_directory, settings.host,
             settings.checkpoint.HasPrivateDisks()),
      membership(settings.identity.servers, settings.host, settings.cluster, now),
      leasing(settings.partitions, settings.cluster),
      recovery(settings.generation, settings.cluster.KeepsVersionsTwice() && !settings.finished,
               std::move(restored)),
      waiting(settings.cluster, now),
      saving(settings.checkpoint, recovery.restored() ? recovery.generation().start_version : -1,
             now),
      manifests(settings.identity, settings.checkpoint.HasPrivateDisks()),
      ending(FromSeconds(settings.checkpoint.grace_s),
             FromSeconds(settings.cluster.stall_timeout_s)),
      // Who has a disk of its own brings the last checkpoint there first.
      farewell(settings.checkpoint.HasPrivateDisks()
                   ? std::max(FromSeconds(settings.checkpoint.grace_s), Shutdown::kLimit)
                   : Shutdown::kLimit),
      progress(settings, recovery.restored(), now) {
  manifests.StartFrom(recovery.restored());
  if (!settings.finished) return;
  phase = Phase::kFinished;
  version = recovery.generation().start_version;
  const int workers = std::max(settings.cluster.workers, settings.cluster.min_workers);
  farewell.WaitFor(workers + settings.identity.servers - 1,
                   now + FromSeconds(settings.cluster.suspect_after_s));
}

int64_t JobState::OldestOpenRound() const {
  const int64_t start = recovery.generation().start_version;
  return std::max(members().OldestOpenRound(std::max(version, start)), start);
}

}  // namespace kumo
