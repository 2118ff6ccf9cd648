#include "server/coordinator/job_state.h"

#include <algorithm>
#include <utility>

namespace kumo {

CoordinatorSettings CoordinatorSettingsOf(const Experiment& experiment, const JobIdentity& identity,
                                          const std::string& host, uint32_t generation,
                                          uint64_t folder, bool finished) {
  CoordinatorSettings settings;
  settings.identity = identity;
  settings.host = host;
  settings.generation = generation;
  settings.finished = finished;
  settings.folder = folder;
  settings.output_directory = experiment.output.directory;
  settings.cluster = experiment.cluster;
  settings.checkpoint = experiment.checkpoint;
  settings.schedule = experiment.schedule;
  settings.partitions = experiment.sync.partitions;
  settings.epochs = experiment.job.epochs;
  settings.points_per_epoch = experiment.output.points_per_epoch;
  settings.carries_residual = CarriesResidual(experiment);
  return settings;
}

JobState::JobState(CoordinatorSettings of, std::optional<checkpoint::Manifest> restored, TimeUs now)
    : settings(std::move(of)),
      folder(settings.folder, settings.output_directory, settings.host,
             settings.checkpoint.HasPrivateDisks()),
      membership(settings.identity.servers, settings.host, settings.cluster, now),
      leasing(settings.partitions, settings.cluster),
      recovery(settings.generation, settings.cluster.KeepsVersionsTwice() && !settings.finished,
               std::move(restored)),
      start_gate(settings.cluster, now),
      saving(settings.checkpoint, recovery.restored() ? recovery.generation().start_version : -1,
             now),
      manifests(settings.identity, settings.checkpoint.HasPrivateDisks()),
      ending(FromSeconds(settings.checkpoint.grace_s),
             FromSeconds(settings.cluster.stall_timeout_s)),
      // Servers with disks of their own fetch the last checkpoint before they leave.
      shutdown(settings.checkpoint.HasPrivateDisks()
                   ? std::max(FromSeconds(settings.checkpoint.grace_s), Shutdown::kLimit)
                   : Shutdown::kLimit),
      progress({settings.schedule, settings.epochs, settings.points_per_epoch,
                settings.cluster.KeepsVersionsTwice()},
               recovery.restored(), now) {
  manifests.StartFrom(recovery.restored());
  if (!settings.finished) return;
  phase = Phase::kFinished;
  version = recovery.generation().start_version;
  const int workers = std::max(settings.cluster.workers, settings.cluster.min_workers);
  shutdown.WaitFor(workers + settings.identity.servers - 1,
                   now + FromSeconds(settings.cluster.suspect_after_s));
}

int64_t JobState::OldestOpenRound() const {
  const int64_t start = recovery.generation().start_version;
  return std::max(members().OldestOpenRound(std::max(version, start)), start);
}

}  // namespace kumo
