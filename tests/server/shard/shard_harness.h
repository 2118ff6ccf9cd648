// Harness: the shards of a small job without network or threads. Tests send the messages and run
// the arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/rng.h"
#include "server/shard/shard.h"
#include "tests/common/job/small_job.h"

namespace kumo::test {

// SmallJob with Nesterov block momentum, which keeps weights apart from the start: all kinds of
// arrays.
Job NesterovJob(CodecId codec = CodecId::kFp32);

// All shards of a job; versions are kept twice if cluster.replicas is 2.
class Shards {
 public:
  Shards(const Job& job, int servers);

  const Job& job() const { return job_; }
  const ShardMap& map() const { return shards_[0]->map(); }
  Shard& shard(int index) { return *shards_[index]; }
  // The report of a server's shard.
  wire::ServerReport Report(int server) const;
  int servers() const { return static_cast<int>(shards_.size()); }

  // Sends a message to the server that has the chunk, or to `server`. The shard's actions are
  // appended to `sent`, `saved` and the work that Compute() runs.
  Status Send(const Message& message, const PeerName& from = "worker/w/1", int server = -1,
              bool leased = true);
  // Runs all work, in order or in an order drawn from `rng`, until none is left.
  void Compute(Rng* rng = nullptr);
  bool HasWork() const { return !work_.empty(); }

  // If versions are kept twice: the next server of a server acknowledges an array, or was replaced
  // by an empty one.
  void Acknowledge(int server, const wire::Header& replicate);
  void ReplaceHolder(int server);
  void Tick(TimeUs now);

  // Random weights for every chunk.
  void Initialise(uint64_t seed = 1);
  // Every partition's contributions to a round in order, computed.
  void RunRound(int64_t round, bool save = false);
  // The whole vector at a version that the shards have.
  std::vector<float> Pull(int64_t version, wire::Vector vector);
  Status Restore(const ShardSnapshot& snapshot);
  // The snapshots in `saved`, merged into one whose arrays are copies.
  ShardSnapshot TakeSaved();

  std::vector<SendAction> sent;
  std::vector<SaveAction> saved;
  std::vector<Status> failures;                          // of what was computed
  std::vector<std::pair<int64_t, MetricSums>> observed;  // versions of chunk 0
  std::function<Directive(int64_t)> directive = [](int64_t) { return Directive(); };

 private:
  void Collect(int server, StepContext context);

  Job job_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::pair<int, std::shared_ptr<ChunkWork>>> work_;
};

Payload PackFloats(std::span<const float> numbers);
std::vector<float> UnpackFloats(const Payload& payload);

// A contribution that is a function of round, partition and chunk.
Message PushMessage(const Job& job, const Chunk& chunk, int64_t round, int partition,
                    bool save = false);
Message InitialiseMessage(const Chunk& chunk, uint64_t seed);
Message PullMessage(int chunk, int64_t version, wire::Vector vector = wire::START);
Message StateMessage(wire::Type type, const Chunk& chunk, int64_t version, int partition, int slot,
                     Payload payload = {});

}  // namespace kumo::test
