#include "server/coordinator/coordinator_settings.h"

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

}  // namespace kumo
