// What a server keeps in memory of the chunks of the server before it (replicator.h): of each chunk
// the newest version that has arrived as a whole, and the weights of the version before, for a
// partition that is computed again. And the way back: ReplicaFetch collects them for a server that
// was started again.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/step_context.h"
#include "server/protocol/version.h"

namespace kumo {

class ReplicaStore {
 public:
  // A version's copy, as far as it has arrived.
  struct Copy {
    size_t expected = 0;                       // how many arrays there are
    std::map<int, Payload> arrays;             // float32, by number (Version)
    wire::CoordinatorState coordinator_state;  // of chunk 0
    bool complete() const { return arrays.size() == expected && arrays.contains(Version::kStart); }
  };
  // What a shard goes on from: a chunk's newest version, in arrays of its own, and the one before,
  // which does not exist before version 0.
  struct Newest {
    int64_t number = 0;
    Version version, previous;
    wire::CoordinatorState coordinator_state;
  };

  // Takes an array of a chunk of `numbers` weights. One that came before, or that is older than
  // what is kept, changes nothing; InvalidArgument where it does not fit.
  Status Add(const Message& message, size_t numbers);
  // The complete versions of a chunk by number: none, one, or two that follow each other.
  std::map<int64_t, const Copy*> Find(int chunk) const;
  // The newest of them, of a job of so many rounds. DataLoss where there is none, or the one before
  // is missing.
  Result<Newest> Unpack(int chunk, int64_t rounds) const;
  void Clear() { chunks_.clear(); }

 private:
  std::map<int, std::map<int64_t, Copy>> chunks_;  // chunk, version
};

class ReplicaFetch {
 public:
  // `chunks`, in their order, are asked of `holder`, `window` of them at a time.
  ReplicaFetch(PeerName holder, std::span<const Chunk> chunks, int window);

  // A REPLICATE, or an ACK of a FETCH_REPLICA. InvalidArgument where it does not fit.
  Status OnMessage(const Message& message);
  // Asks for what is not there yet, and asks again after a while. As long as the holder has not
  // answered (it may not have joined the generation yet) one chunk alone is asked for, and soon
  // again.
  void Tick(StepContext* context);
  // Whether every chunk is there.
  bool complete() const { return first_missing_ == wanted_.size(); }
  // Whether there is a chunk of which the holder keeps nothing.
  bool lost() const { return lost_; }
  const ReplicaStore& store() const { return store_; }

 private:
  struct Wanted {
    Chunk chunk;
    int64_t newest = -1;  // as the holder says
    size_t versions = 0;  // 0: it has not said yet
    TimeUs ask_at = 0;
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
  TimeUs interval_ = 0;
};

}  // namespace kumo
