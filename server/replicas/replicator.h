// Keeps each version of a server's chunks twice: sends it to the next server, which keeps it in
// memory (replica_store.h), and says when it is there. A version that anybody has seen is on two
// servers, so the death of one loses no round. docs/internals/replicas.md tells it with
// numbers.
//
// Owned by a shard's ReplicaSender; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "server/protocol/step_context.h"
#include "server/protocol/version.h"

namespace kumo {

// The server that keeps the versions of server `index`, of `servers` (at least two).
PeerName ReplicaHolder(int index, int servers);

class Replicator {
 public:
  // window: how many arrays are on their way at a time (ChunkWindow), the last version's beyond it.
  Replicator(PeerName holder, int window) : holder_(std::move(holder)), window_(window) {}

  // Sends a chunk's version, which must exist, behind those that wait. Its arrays are not written
  // to as long as they are shared. coordinator_state may be null.
  void Send(int chunk, int64_t number, const Version& version,
            const std::shared_ptr<const wire::CoordinatorState>& coordinator_state,
            StepContext* context);
  // An acknowledgement of the holder: true when with it a whole version is there. What waits goes
  // on its way.
  bool OnAcknowledged(const wire::Header& header, StepContext* context);
  // Repeats what has not been acknowledged for a while.
  void Tick(StepContext* context);
  // The holder may be another process, which has not joined the generation yet: nothing is on its
  // way any more, and what is sent from now on is repeated soon until the holder has answered.
  void StartOver();
  bool idle() const { return sent_.empty(); }
  // Whether a version of a chunk is on its way.
  bool IsSending(int chunk, int64_t version) const { return sent_.contains({chunk, version}); }

 private:
  struct Sent {
    std::map<int, Message> arrays;  // not acknowledged yet, by number (Version)
    bool waits = true;              // nothing of it has been sent
    TimeUs interval = 0;
    TimeUs resend_at = 0;  // 0: the interval begins with the next tick
  };
  using Key = std::pair<int, int64_t>;  // chunk, version

  void SendWaiting(StepContext* context);
  void SendArrays(const Sent& sent, StepContext* context) const;
  void Forget(std::map<Key, Sent>::iterator sent);

  PeerName holder_;
  int window_;
  bool unheard_ = false;  // since it started over
  std::map<Key, Sent> sent_;
  std::deque<Key> waiting_;  // in order; those that are in sent_ no more are passed over
  size_t on_their_way_ = 0;  // arrays of what does not wait
};

}  // namespace kumo
