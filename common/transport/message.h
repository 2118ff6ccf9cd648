// One message between two processes: a protobuf header frame and at most one payload frame.
//
// Payload bytes are shared, never copied: a received payload lives in the transport's own buffer, a
// sent one in the sender's (a chunk of a shard's weights, an encoded contribution), and both are
// freed when the last reader lets go. Whoever holds a Payload may read it from any thread; nobody
// may write to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "proto/wire.pb.h"

namespace kumo {

struct Payload {
  std::shared_ptr<const void> owner;  // keeps `bytes` alive
  std::span<const std::byte> bytes;

  bool empty() const { return bytes.empty(); }
};

struct Message {
  wire::Header header;
  Payload payload;
};

// Names a process within a job. Servers are "server/<index>"; a worker is
// "worker/<name>/<incarnation>", a client (kumo status) "client/<random>".
using PeerName = std::string;

PeerName ServerPeer(int index);
PeerName WorkerPeer(const std::string& name, uint64_t incarnation);

}  // namespace kumo
