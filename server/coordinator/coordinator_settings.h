// What of a job's settings its coordinator may read.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "common/job/job_identity.h"
#include "common/optimiser/schedule.h"
#include "common/settings/experiment.h"

namespace kumo {

struct CoordinatorSettings {
  JobIdentity identity;
  std::string host;         // of this process
  uint32_t generation = 1;  // one that no process of this job has used before
  bool finished = false;    // the job was done before: others are told, and nothing else happens
  // What this process has written into output.directory, for other servers to find (output_lock.h);
  // 0: nothing.
  uint64_t folder = 0;
  std::string output_directory;
  Experiment::Cluster cluster;
  Experiment::CheckpointOptions checkpoint;
  ScheduleSettings schedule;
  int partitions = 1;
  int epochs = 1;
  int points_per_epoch = 1;       // of the curves
  bool carries_residual = false;  // each partition, from round to round

  // Whether partitions carry anything from round to round, which may be lost with a worker.
  bool CarriesState(const JobSpec& spec) const {
    return carries_residual || spec.optimiser_slots > 0;
  }
};

// The settings' part that is the coordinator's; the other fields are as handed in.
CoordinatorSettings CoordinatorSettingsOf(const Experiment& experiment, const JobIdentity& identity,
                                          const std::string& host, uint32_t generation,
                                          uint64_t folder = 0, bool finished = false);

}  // namespace kumo
