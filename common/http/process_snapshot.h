// What a process shows of itself over HTTP, at one moment: copied out by its loop, and never
// changed again, so that whoever reads it disturbs nobody.
//
// Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/http/run_history.h"
#include "common/transport/transport_counters.h"
#include "proto/wire.pb.h"

namespace kumo {

// Durations, counted by how long they were.
struct DurationCounts {
  // Upper limits in seconds, rising; what is longer is counted behind the last.
  static const std::vector<double>& Limits();

  std::vector<uint64_t> counts = std::vector<uint64_t>(Limits().size() + 1);
  double sum_s = 0;

  void Add(double seconds);
};

// Of server 0, since it started.
struct JobCounts {
  uint64_t rounds = 0;
  uint64_t samples = 0;
  DurationCounts round_seconds;  // from one round's end to the next one's
  uint64_t checkpoints = 0;      // whole ones
  uint64_t went_back = 0;        // to a checkpoint
  uint64_t lost_workers = 0;     // fell silent, and then were given up
  uint64_t took_over = 0;        // 1 where this process took the place of a server 0 that died
};

// Files of checkpoints that a server wrote, since it started.
struct FileCounts {
  DurationCounts seconds;  // from the order to the durable file
  uint64_t bytes = 0;
  uint64_t failures = 0;
};

struct ProcessSnapshot {
  bool ready = false;
  std::string waits_for;  // where it is not: what for

  TransportCounters traffic;
  int64_t queue_bytes = 0;                        // that wait to be sent
  uint64_t refused_peers = 0;                     // REFUSED messages sent
  std::optional<FileCounts> files;                // a server
  std::optional<wire::JobStatus::Worker> worker;  // a worker: itself
  // Server 0.
  std::optional<wire::JobStatus> job;
  JobCounts counts;
  std::shared_ptr<const RunHistory> history;
};

}  // namespace kumo
