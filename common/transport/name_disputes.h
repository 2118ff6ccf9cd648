// Which process is heard under a name at a listening socket, and what is said about that: who has a
// name is asked whether it still exists when another process speaks under it (PING, PONG), and the
// other is told where it does (REFUSED). What follows from the answers is peer_names.h's to say.
//
// Owned by the transport, whose loop thread alone uses it. Time is handed in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/message.h"
#include "common/transport/peer_names.h"

namespace kumo {

class NameDisputes {
 public:
  // Sends a header to a connection, where that reads what it is sent; false when it is gone.
  using SendTo = std::function<bool(const std::string& routing_id, wire::Header header)>;

  NameDisputes(PeerNames names, SendTo send) : names_(std::move(names)), send_(std::move(send)) {}

  // The process behind a connection has spoken under a name. FailedPrecondition where another has
  // that.
  Status Hear(const std::string& routing_id, const PeerName& name, TimeUs now);
  // It has answered a PING of this number.
  void OnPong(const std::string& routing_id, const PeerName& name, uint64_t number);

  // Where a message to `name` goes; null when nobody has that name.
  const std::string* Find(const PeerName& name) const { return names_.Find(name); }

 private:
  PeerNames names_;
  SendTo send_;
};

}  // namespace kumo
