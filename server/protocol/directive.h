// Decisions of the coordinator that every server follows: the generation of the job, the directive
// of each round, and the order to save a version now.
//
// Values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "proto/wire.pb.h"

namespace kumo {

// Generation: a stretch of a job's life without a loss. Messages of another generation are refused.
struct Generation {
  // 0: server 0 has not welcomed this server yet.
  uint32_t number = 0;
  // The generation in which the job began or last went back to a checkpoint. Generations between
  // `since` and `number` lost nothing: the lost state had a second copy, and the other servers went
  // on.
  uint32_t since = 0;
  // The version that the job began with in `since`: 0, or the version of checkpoint `restore`.
  int64_t start_version = 0;
  std::string restore;  // name of the checkpoint; "" if there is none
  // The start is not known yet, or the number is not durable: no process can be welcomed.
  bool choosing = false;
};

// Directive: the coordinator's decision about the last round that starts from a version
// (JobPlan::RoundsFrom). It travels with the pull of chunk 0 and comes back with the pushes to that
// round, so that every process acts on the same round.
struct Directive {
  bool save = false;  // a checkpoint is taken when the round closes
  bool stop = false;  // and the job stops then
  bool move = false;  // leases move when the round closes: workers wait for their orders
  // The state for a later coordinator; null unless versions are kept twice.
  std::shared_ptr<const wire::CoordinatorState> state = nullptr;
};

// Order to save a version without waiting for the end of a round.
struct SaveOrder {
  int64_t version = -1;
  int attempt = 0;       // counts the orders; 0: none yet
  bool partial = false;  // save even if states that partitions carry are missing
};

}  // namespace kumo
