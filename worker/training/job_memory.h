// What memory a job's processes need, worked out from the experiment, the network file and the
// headers of the data's files, before any of it is taken.
//
// Values and pure functions of those files; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/memory_need.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "proto/model.pb.h"

namespace kumo {

// How large a minibatch of a data set can become, and how many are worth reading ahead.
struct MinibatchRoom {
  int samples = 1;
  int ahead = 1;
};

// No more than the settings ask for, and no more than the data give: a minibatch holds at most the
// largest slice that a partition gets in a round, and what is read ahead is of the slice that is
// computed and the one after it.
struct MinibatchRooms {
  MinibatchRoom train;
  MinibatchRoom validation;

  int largest() const { return std::max(train.samples, validation.samples); }

  // InvalidArgument where there is no such job (JobPlan::Make).
  static Result<MinibatchRooms> Of(const Experiment& experiment, int64_t train_samples,
                                   int64_t validation_samples);
};

struct JobMemory {
  MemoryNeed worker;
  MemoryNeed server;

  // Whether this process has room to be a worker: MemoryNeed::CheckFits; ok where nobody knows.
  Status CheckWorkerFits() const;
};

// servers: how many there will be; at least 1. A worker is one that has its even share of the
// partitions. On a GPU the worker's need is the host's memory alone. The errors of MeasureDatasets.
Result<JobMemory> MemoryOfJob(const Experiment& experiment, const model::Network& network,
                              int servers);
// The same of the network in experiment.network.file. The errors of LoadNetwork, too.
Result<JobMemory> MemoryOfJob(const Experiment& experiment, int servers);

}  // namespace kumo
