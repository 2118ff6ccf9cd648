// Snapshot of a process for its HTTP pages: copied by its loop and immutable afterwards, so that
// readers do not disturb the loop.
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

// Histogram of durations.
struct DurationCounts {
  // Upper limits of the buckets in seconds, ascending; the last bucket has no limit.
  static const std::vector<double>& Limits();

  std::vector<uint64_t> counts = std::vector<uint64_t>(Limits().size() + 1);
  double sum_s = 0;

  void Add(double seconds);
};

// Counters of server 0 since its start.
struct JobCounts {
  uint64_t rounds = 0;
  uint64_t samples = 0;
  DurationCounts round_seconds;  // between the ends of two rounds
  uint64_t checkpoints = 0;      // complete ones
  uint64_t went_back = 0;        // rollbacks to a checkpoint
  uint64_t lost_workers = 0;     // given up, or gone with partitions
  uint64_t took_over = 0;        // 1 if this process replaced a dead server 0
};

// Counters of the checkpoint files that a server has written since its start.
struct FileCounts {
  DurationCounts seconds;  // from the order to the durable file
  uint64_t bytes = 0;
  uint64_t failures = 0;
};

struct ProcessSnapshot {
  bool ready = false;
  std::string waits_for;  // the reason why it is not ready

  TransportCounters traffic;
  int64_t queue_bytes = 0;                        // waiting to be sent
  uint64_t refused_peers = 0;                     // REFUSED messages sent
  std::optional<FileCounts> files;                // of a server
  std::optional<wire::JobStatus::Worker> worker;  // of a worker
  // Server 0's:
  std::optional<wire::JobStatus> job;
  JobCounts counts;
  std::shared_ptr<const RunHistory> history;
};

}  // namespace kumo
