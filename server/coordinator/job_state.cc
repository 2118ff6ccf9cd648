#include "server/coordinator/job_state.h"

#include <algorithm>
#include <utility>

namespace kumo {

JobState::JobState(CoordinatorStart of, std::optional<checkpoint::Manifest> restored, TimeUs now)
    : start(std::move(of)),
      folder(start.folder, start.experiment.output.directory, start.host,
             start.experiment.checkpoint.HasPrivateDisks()),
      level(start.experiment.network.instruction_set),
      membership(start.identity.servers, start.host, start.experiment.cluster, now),
      leasing(start.experiment.sync.partitions, start.experiment.cluster),
      recovery(start.generation, start.experiment.cluster.KeepsVersionsTwice() && !start.finished,
               std::move(restored)),
      start_gate(start.experiment.cluster, FromSeconds(start.experiment.checkpoint.grace_s), now),
      saving(start.experiment.checkpoint,
             recovery.restored() ? recovery.generation().start_version : -1, now),
      manifests(start.identity, start.experiment.checkpoint.HasPrivateDisks()),
      ending(FromSeconds(start.experiment.checkpoint.grace_s),
             FromSeconds(start.experiment.cluster.stall_timeout_s)),
      // Servers with disks of their own fetch the last checkpoint before they leave.
      shutdown(start.experiment.checkpoint.HasPrivateDisks()
                   ? std::max(FromSeconds(start.experiment.checkpoint.grace_s), Shutdown::kLimit)
                   : Shutdown::kLimit),
      progress(
          {.schedule = start.experiment.schedule,
           .epochs = start.experiment.job.epochs,
           .points_per_epoch = start.experiment.output.points_per_epoch,
           .keeps_versions_twice = start.experiment.cluster.KeepsVersionsTwice(),
           .stop_rule = {start.experiment.PatienceInEpochs(), start.experiment.job.patience_metric,
                         start.experiment.job.min_improvement}},
          recovery.restored(), now) {
  manifests.StartFrom(recovery.restored());
  if (!start.finished) return;
  phase = JobPhase::kFinished;
  version = recovery.generation().start_version;
  shutdown.WaitFor(start_gate.workers() + start.identity.servers - 1,
                   now + FromSeconds(start.experiment.cluster.suspect_after_s));
}

int64_t JobState::OldestOpenRound() const {
  const int64_t first = recovery.generation().start_version;
  const int64_t newest = std::max(version, first);
  const int64_t oldest = plan ? plan->OldestOpen(newest) : newest - 1;
  return std::max(members().OldestOpenRound(newest, oldest), first);
}

}  // namespace kumo
