// Who takes part on one server: peers that said hello and were welcomed, and those that are welcome
// as soon as this server knows where the generation starts, or has what it is to hold.
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
  // Why a hello is refused whatever it says: another process's name (what a name says from now on
  // counts as what that process says), or too many members.
  Status Check(const PeerName& from, const wire::Hello& hello) const;

  bool Has(const PeerName& peer) const { return members_.contains(peer); }
  // It joins, or is heard again.
  void Saw(const PeerName& peer, TimeUs now) { members_[peer] = now; }
  void Remove(const PeerName& peer) { members_.erase(peer); }
  // Removes those that do not take part any more, and returns them.
  std::vector<PeerName> RemoveUnless(
      const std::function<bool(const PeerName& peer, TimeUs seen)>& stays);
  // A generation is over: everybody has to join again. Who waits goes on waiting.
  void Clear() { members_.clear(); }

  // It is to be welcomed later.
  void LetWait(const PeerName& peer, bool worker);
  // Those that wait, workers among them only where `workers`; they are members from now on.
  std::vector<PeerName> TakeWaiting(bool workers, TimeUs now);

 private:
  std::map<PeerName, TimeUs> members_;  // when each was seen
  std::map<PeerName, bool> waiting_;    // whether it is a worker
};

}  // namespace kumo
