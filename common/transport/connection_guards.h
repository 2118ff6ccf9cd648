// Connection guards of a listening socket: bounds on what a peer can cost before its messages
// count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"

namespace kumo {

// Backlog guard: cuts connections that have sent far more bytes than ZeroMQ has delivered. ZeroMQ
// bounds the size of a frame and the number of waiting messages, but a message counts only once it
// is complete: a peer that announces another frame for ever makes the I/O thread collect frames
// until memory is exhausted. So for each accepted connection the bytes that the kernel has received
// (TCP_INFO) are compared with the bytes of delivered messages. The difference is queued,
// incomplete or in the kernel's buffer; an honest peer cannot have more there than the queue takes.
//
// Empty frames take 2 bytes on the wire and 64 in memory, so an incomplete message has a limit of
// its own. ZeroMQ's part of the difference is what the kernel has given it. It is of one message if
// the loop has found no complete message since, and has been delivered nothing: two checks with
// such a pause between them cut a peer with more there than the longest message.
//
// Works on tcp; ipc is protected by the permissions of the socket file. Owned by the transport,
// used by its loop thread only.
class BacklogGuard {
 public:
  static constexpr TimeUs kInterval = 100 * kMillisecond;

  // Limits in bytes, per connection.
  struct Limits {
    int64_t all = 0;      // not delivered
    int64_t message = 0;  // of an incomplete message
  };
  // port: the listening port. frame_overhead: bytes that encryption adds to each frame.
  BacklogGuard(int port, Limits limits, size_t frame_overhead)
      : port_(port), limits_(limits), frame_overhead_(frame_overhead) {}

  // A connection was made or lost; its descriptor belongs to ZeroMQ.
  void Accepted(int fd) { connections_[fd] = {}; }
  void Closed(int fd) { connections_.erase(fd); }
  // A frame of this many bytes was delivered from connection `fd`.
  void Delivered(int fd, size_t frame_bytes);
  // The listening socket has no complete message.
  void Drained() { drained_ = true; }

  // If the last check is kInterval ago, shuts down the connections over the limit and returns their
  // number. The owner calls it at least every kInterval while there are connections.
  int Check(TimeUs now);
  // Shuts a connection down, if `fd` is still a connection that was accepted here.
  void Cut(int fd) const;
  bool idle() const { return connections_.empty(); }

 private:
  struct Connection {
    int64_t delivered = 0;
    // The least that ZeroMQ had at a check. Frames that were delivered before their connection was
    // reported are not in `delivered`.
    int64_t least = std::numeric_limits<int64_t>::max();
    // `delivered` at the last check, if ZeroMQ had more than the longest message then; else -1.
    int64_t long_at = -1;
  };
  // Bytes received but not delivered.
  struct Backlog {
    int64_t all = 0;
    int64_t in_zmq = 0;  // of them, those that ZeroMQ has
  };
  // nullopt if `fd` is no longer an accepted connection.
  std::optional<Backlog> BacklogOf(int fd, int64_t delivered) const;

  const int port_;
  const Limits limits_;
  const size_t frame_overhead_;
  TimeUs next_check_ = 0;
  bool drained_ = false;                             // since the last check
  std::unordered_map<int, Connection> connections_;  // by descriptor
};

// Pending connections: accepted connections that have not delivered a message yet. If keys are
// required, peers without a key never do. Their number is bounded, so that they exhaust neither
// descriptors nor memory: one too many ends the one that has been silent longest. They are counted
// and logged at a bounded rate.
//
// Owned by the listening socket, used by its loop thread only.
class PendingConnections {
 public:
  // Honest processes that may shake hands at the same time; further ones retry.
  static constexpr size_t kMost = 256;

  // end: closes the connection of a descriptor; Closed is called later.
  explicit PendingConnections(std::function<void(int fd)> end) : end_(std::move(end)) {}

  void Accepted(int fd);
  void Spoke(int fd);
  void Closed(int fd);

  // Number of connections that were closed, by either end, without a message.
  uint64_t left() const { return left_; }

 private:
  const std::function<void(int fd)> end_;
  std::list<int> silent_;  // longest first
  std::unordered_map<int, std::list<int>::iterator> places_;
  uint64_t left_ = 0;
};

}  // namespace kumo
