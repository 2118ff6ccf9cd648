// Chunk 0's versions as the coordinator sees them: it is told of each, with the sums over the round
// that made it, and says what the round that starts from it is to do.
//
// Owned by the Shard; one that has not got chunk 0 makes no use of it. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "proto/wire.pb.h"
#include "server/protocol/directive.h"
#include "server/protocol/step_context.h"

namespace kumo {

// Is called once for each version of chunk 0 that is made here, before anybody can pull it, with
// the sums over the samples of the round that made it. Returns the directive for the round that
// starts from it; what it wants done besides goes into the turn.
using VersionObserver =
    std::function<Directive(int64_t version, const MetricSums& metrics, StepContext* context)>;

class Directives {
 public:
  Directives(VersionObserver observer, int partitions)
      : observer_(std::move(observer)), metrics_(partitions) {}

  // What a partition's contribution to the open round says of its samples.
  void Note(int partition, const MetricSums& metrics) { metrics_[partition] = metrics; }
  // Chunk 0's next version is made.
  void Observe(int64_t version, StepContext* context);
  // What the coordinator said of a version that comes back from another server.
  void Adopt(int64_t version, const wire::CoordinatorState& said);

  // What was said of a chunk's version: it travels with chunk 0.
  Directive At(int chunk, int64_t version) const;
  // Of the newest one, which there must be.
  std::pair<int64_t, Directive> newest() const { return *said_.rbegin(); }

 private:
  VersionObserver observer_;
  std::map<int64_t, Directive> said_;  // of chunk 0's version, the one before and the next one
  std::vector<MetricSums> metrics_;    // of the open round, by partition
};

}  // namespace kumo
