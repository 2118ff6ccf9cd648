// Peers: the processes that take part on one server: members, which were welcomed, and peers that
// wait until this server knows where the generation starts, or has its shard.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

class Peers {
 public:
  // Checks a hello before its content: FailedPrecondition if the sender's name belongs to another
  // process (from then on the name stands for the process); ResourceExhausted if there are too many
  // members.
  Status Check(const PeerName& from, const wire::Hello& hello) const;

  bool Has(const PeerName& peer) const { return members_.contains(peer); }
  // A peer joins, or a member is heard.
  void Saw(const PeerName& peer, TimeUs now) { members_[peer] = now; }
  void Remove(const PeerName& peer) { members_.erase(peer); }
  // Removes the members that do not stay, and returns them.
  std::vector<PeerName> RemoveUnless(
      const std::function<bool(const PeerName& peer, TimeUs seen)>& stays);
  // A generation is over: all members have to join again. Waiting peers go on waiting.
  void Clear() { members_.clear(); }

  // Lets a peer wait for its welcome.
  void LetWait(const PeerName& peer, bool worker);
  // Makes the waiting peers members, and returns them; workers only if `workers`.
  std::vector<PeerName> TakeWaiting(bool workers, TimeUs now);

 private:
  std::map<PeerName, TimeUs> members_;  // when each was last heard
  std::map<PeerName, bool> waiting_;    // true: a worker
};

}  // namespace kumo
