// Replica store: versions that a server keeps in memory for the server before it (replicator.h).
// Replica fetch: the way back, for a server that was started again.
//
// The store keeps, of each chunk, the newest version that is complete, and the weights of versions
// before (JobPlan::OldestKept), for a partition that is computed again; beside them at most one
// version on its way. Scenario that needs two versions: chunk 0 has reached version 6, chunk 1
// still needs a contribution to round 5, and the worker of that partition is lost. Another worker
// computes the block again and pulls version 5 of both chunks.
//
// Owned by Neighbours; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/protocol/version.h"

namespace kumo {

class ReplicaStore {
 public:
  // Copy of a version, as far as it has arrived.
  struct Copy {
    size_t expected = 0;                       // number of its arrays
    std::map<int, Payload> arrays;             // float32, by number (Version)
    wire::CoordinatorState coordinator_state;  // of chunk 0
    bool complete() const { return arrays.size() == expected && arrays.contains(Version::kStart); }
  };
  // The versions that a chunk goes on from: the newest one and those before that may be needed, by
  // number, in arrays of their own.
  struct Newest {
    std::map<int64_t, Version> versions;
    wire::CoordinatorState coordinator_state;  // of the newest
  };

  // Takes an array of a chunk of `elements` weights. A repeated array, or one of an older version
  // than the kept ones, changes nothing. InvalidArgument if it does not fit.
  Status Add(const Message& message, size_t elements, const JobPlan& plan);
  // The complete versions of a chunk by number.
  std::map<int64_t, const Copy*> Find(int chunk) const;
  // The newest versions of a chunk. DataLoss if there is none, or one before is missing.
  Result<Newest> Unpack(int chunk, const JobPlan& plan) const;
  void Clear() { chunks_.clear(); }

 private:
  std::map<int, std::map<int64_t, Copy>> chunks_;  // chunk, version
};

class ReplicaFetch {
 public:
  // Asks `holder` for `chunks`, in their order, `window` of them at a time.
  ReplicaFetch(PeerName holder, std::span<const Chunk> chunks, int window);

  // A REPLICATE, or an ACK of a FETCH_REPLICA. InvalidArgument if it does not fit.
  Status OnMessage(const Message& message, const JobPlan& plan);
  // Asks for missing chunks, and repeats requests if nothing has arrived for a while: what is asked
  // twice is sent twice, and would fill a slow link. Until the holder has answered (it may not have
  // joined the generation yet), asks for one chunk only, at short intervals.
  void Tick(StepContext* context);
  // Every chunk is there.
  bool complete() const { return first_missing_ == wanted_.size(); }
  // The holder keeps no version of some chunk.
  bool lost() const { return lost_; }
  const ReplicaStore& store() const { return store_; }

 private:
  struct Wanted {
    Chunk chunk;
    int64_t newest = -1;  // version, as the holder said
    size_t versions = 0;  // 0: the holder has not answered
    TimeUs ask_at = 0;    // 0: not asked for yet
    bool complete = false;
  };

  bool IsComplete(const Wanted& wanted) const;
  Wanted* Find(int chunk);

  PeerName holder_;
  int window_;
  std::vector<Wanted> wanted_;  // in the chunks' order
  size_t first_missing_ = 0;    // all before it are complete
  ReplicaStore store_;
  bool lost_ = false;
  bool heard_ = false;  // the holder has answered
  bool heard_since_tick_ = false;
  TimeUs heard_at_ = 0;  // the first tick after its last answer
  TimeUs interval_ = 0;
};

}  // namespace kumo
