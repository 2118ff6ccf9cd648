// Message between two processes: a protobuf header frame and at most one payload frame.
//
// Payload bytes are shared, never copied: a received payload lies in the transport's buffer, a sent
// payload in the sender's (a chunk of a shard's weights, a coded contribution); both are freed with
// their last reference. A Payload may be read from any thread and must not be written.
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

// Name of a process within a job: a server "server/<index>", a worker
// "worker/<name>/<incarnation>", a client (kumo status) "client/<random>".
using PeerName = std::string;

PeerName ServerPeer(int index);
PeerName WorkerPeer(const std::string& name, uint64_t incarnation);

// Request window: the messages of one kind in flight from one process to another that carry or
// request a chunk of `chunk_bytes`: 256 MiB in total, 4 to 2,048 messages. The transport's queue
// per peer holds several such windows of a few kinds in both directions, and a network holds less
// in flight.
int ChunkWindow(int64_t chunk_bytes);

}  // namespace kumo
