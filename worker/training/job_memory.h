// Memory estimate of a job's processes, computed from the experiment, the network file and the
// headers of the data files before anything is allocated.
//
// Values and pure functions of those files; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/memory_budget.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "proto/model.pb.h"

namespace kumo {

// Limits of the minibatches of a data set: samples per minibatch, and minibatches read ahead.
struct MinibatchRoom {
  int samples = 1;
  int least = 1;  // samples of the smallest; of training only
  int ahead = 1;
};

// Limits of both data sets. They exceed neither the settings nor the data: a minibatch holds at
// most the largest slice that a partition gets in a round, and reading ahead covers the current
// slice and the next one.
struct MinibatchRooms {
  MinibatchRoom train;
  MinibatchRoom validation;

  int largest() const { return std::max(train.samples, validation.samples); }

  // InvalidArgument if the job is impossible (JobPlan::Make).
  static Result<MinibatchRooms> Of(const Experiment& experiment, int64_t train_samples,
                                   int64_t validation_samples);
};

// FailedPrecondition if the workers are a program with a model of its own (worker.command).
Status CheckHasNetwork(const Experiment& experiment);
// The network in experiment.network.file. Also the error of CheckHasNetwork. Reads a text's
// vocabulary if the file asks for it. The errors of LoadNetwork and MeasureDatasets.
Result<model::Network> NetworkOf(const Experiment& experiment);

struct JobMemory {
  MemoryNeed worker;
  MemoryNeed server;
  int64_t parameters = 0;  // of the network
  // Lines for people: things in the data files and in the network that their owner may not have
  // intended.
  std::vector<std::string> notes{};

  // ResourceExhausted if this process has too little memory to be a worker (MemoryNeed::CheckFits);
  // ok if the limit is unknown.
  Status CheckWorkerFits() const;
};

// servers: the number of servers, at least 1. The worker's estimate assumes an even share of the
// partitions; on a GPU it covers host memory only. The errors of MeasureDatasets.
Result<JobMemory> MemoryOfJob(const Experiment& experiment, const model::Network& network,
                              int servers);
// Reads the network from experiment.network.file. Also the errors of LoadNetwork.
Result<JobMemory> MemoryOfJob(const Experiment& experiment, int servers);

}  // namespace kumo
