// A small job's shards without network or threads: messages go in by hand, and the arithmetic
// runs when the test says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "server/shard/shard.h"
#include "tests/common/job/small_job.h"

namespace kumo::test {

// SmallJob with Nesterov block momentum, which keeps weights apart from what blocks start from:
// every array that there is.
Job NesterovJob(CodecId codec = CodecId::kFp32);

// All shards of a job; versions are kept twice where cluster.replicas says so.
class Shards {
 public:
  Shards(const Job& job, int servers);

  const Job& job() const { return job_; }
  const ShardMap& map() const { return shards_[0]->map(); }
  Shard& shard(int index) { return *shards_[index]; }
  // What a server says of its shard.
  wire::ServerReport Report(int server) const;
  int servers() const { return static_cast<int>(shards_.size()); }

  // To the server that has the chunk (`server` says otherwise). What it makes the shard do is
  // appended to `sent`, `saved` and the work that Compute() runs.
  Status Send(const Message& message, const PeerName& from = "worker/w/1", int server = -1,
              bool leased = true);
  // Runs what there is to compute, in turn or in the order that `rng` draws, until nothing is left.
  void Compute(Rng* rng = nullptr);
  bool HasWork() const { return !work_.empty(); }

  // Where versions are kept twice: a server's next one acknowledges an array, or was replaced by an
  // empty one.
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
  // What is in `saved`, merged into one snapshot whose arrays share nothing with the shards.
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
