// Replicator: sends each version of a server's chunks to the next server, which keeps it in memory
// (replica_store.h), and knows when it has arrived. A version that was published is on two servers,
// so the loss of one server loses no round. docs/internals/replicas.md has an example with
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

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/protocol/version.h"

namespace kumo {

// The server that keeps the versions of server `index`, of `servers` (at least two).
PeerName ReplicaHolder(int index, int servers);

class Replicator {
 public:
  // window: arrays that are on their way at a time (ChunkWindow); the last version may exceed it.
  Replicator(PeerName holder, int window) : holder_(std::move(holder)), window_(window) {}

  // Queues a chunk's version, which must exist; versions before `oldest` are given up. No work may
  // write to its arrays while they are shared. coordinator_state may be null.
  void Send(int chunk, int64_t number, int64_t oldest, const Version& version,
            const std::shared_ptr<const wire::CoordinatorState>& coordinator_state,
            StepContext* context);
  // An acknowledgement of the holder: true if it completes a version there. Sends queued versions
  // as the window allows.
  bool OnAcknowledged(const wire::Header& header, StepContext* context);
  // Repeats arrays that have not been acknowledged for a while, during which nothing was: a slow
  // network may take long to deliver a window.
  void Tick(StepContext* context);
  // The holder may be another process that has not joined the generation yet. Forgets everything
  // that was on its way; later sends are repeated at short intervals until the holder answers.
  void StartOver();
  bool idle() const { return sent_.empty(); }
  // Whether some version of a chunk is queued or on its way.
  bool IsSending(int chunk) const {
    const auto next = sent_.lower_bound({chunk, 0});
    return next != sent_.end() && next->first.first == chunk;
  }

 private:
  struct Sent {
    std::map<int, Message> arrays;  // not acknowledged yet, by number (Version)
    bool waits = true;              // queued: nothing of it has been sent
    TimeUs interval = 0;            // 0: of the first repetition
    TimeUs resend_at = 0;           // 0: the interval begins with the next tick
  };
  using Key = std::pair<int, int64_t>;  // chunk, version

  void SendWaiting(StepContext* context);
  void SendArrays(const Sent& sent, StepContext* context) const;
  void Forget(std::map<Key, Sent>::iterator sent);

  PeerName holder_;
  int window_;
  bool unheard_ = false;  // the holder has not answered since StartOver
  bool heard_since_tick_ = false;
  std::map<Key, Sent> sent_;
  std::deque<Key> waiting_;  // in order; may name versions that are no longer in sent_
  size_t on_their_way_ = 0;  // arrays of versions that do not wait
};

}  // namespace kumo
