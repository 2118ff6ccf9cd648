// Invariants of a job, whatever happens to its processes. The simulation reports the machines'
// actions; each violation is kept as a sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "proto/checkpoint.pb.h"
#include "server/protocol/actions.h"
#include "server/protocol/chunk_work.h"

namespace kumo::sim {

class Invariants {
 public:
  // Whether a partition's contribution to a chunk counts nothing in its round's mean.
  using Weightless = std::function<bool(const RoundPlan&, const Chunk&, int partition)>;
  Invariants(const JobPlan& plan, const ShardMap& map, int64_t validation_samples,
             Weightless weightless)
      : plan_(plan),
        map_(map),
        validation_samples_(validation_samples),
        weightless_(std::move(weightless)) {}

  // A chunk takes each partition's contribution to a round once, closes the round once with all of
  // them, and its versions only grow within a generation. A process (incarnation) that has taken
  // the place of another one may close the last round again, which no worker has seen.
  void OnWork(uint64_t incarnation, const ChunkWork& work);
  // Rounds close one after the other within a generation, each with all samples of its metrics.
  void OnRoundClosed(uint32_t generation, const RoundClosedAction& closed);
  // Every epoch is of every sample once: those of the metrics of its rounds.
  void OnEpoch(const EpochEvaluatedAction& epoch);
  // Generations only grow, and a job never goes back further than to a version that is complete.
  void OnWentBack(uint32_t generation, int64_t version, bool checkpoint_is_there);
  // A worker's message of one generation changes nothing in another.
  void OnAnswered(const wire::Header& sent, uint32_t generation, const ServerActions& actions);
  // A manifest is complete or absent: it names the files that are there.
  void OnManifest(const checkpoint::Manifest& manifest, const std::set<std::string>& there);

  void Violation(std::string what) { violations_.push_back(std::move(what)); }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void OnApplication(uint64_t incarnation, const ChunkWork& work);

  struct ChunkRound {
    uint64_t incarnation = 0;
    int64_t round = -1;
    int contributions = 0;
    bool closed = false;
    int64_t first_round = 0;  // of the generation, on arrival
  };

  const JobPlan plan_;
  const ShardMap map_;
  const int64_t validation_samples_;
  const Weightless weightless_;
  std::map<std::pair<uint32_t, int>, ChunkRound> chunks_;  // generation, chunk
  uint32_t generation_ = 0;
  int64_t closed_ = -1;  // the last round, of the generation; -1: none yet
  std::vector<std::string> violations_;
};

}  // namespace kumo::sim
