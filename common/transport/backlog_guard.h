// Cuts off connections that have sent us far more than they have let us read.
//
// ZeroMQ bounds the size of a frame and the number of messages that wait, but a message only counts
// once it is complete: a peer that says "another frame follows" for ever makes the I/O thread
// gather frames until memory is gone. So we compare, for each connection that a listening socket
// accepted, the bytes that the kernel has received (TCP_INFO) with the bytes of the messages that
// came out of ZeroMQ. What lies between is queued, unfinished or in the kernel's buffer; an honest
// peer cannot have more there than the queue takes.
//
// Works on tcp; ipc is fenced by the socket file's permissions. Owned by the transport, used by its
// loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "common/base/clock.h"

namespace kumo {

class BacklogGuard {
 public:
  static constexpr TimeUs kInterval = 100 * kMillisecond;

  // `port`: the one that is listened on. `limit` is in bytes, per connection. frame_overhead: what
  // encryption adds to each frame.
  BacklogGuard(int port, int64_t limit, size_t frame_overhead)
      : port_(port), limit_(limit), frame_overhead_(frame_overhead) {}

  // A connection was made or lost; its descriptor belongs to ZeroMQ.
  void Accepted(int fd) { delivered_[fd] = 0; }
  void Closed(int fd) { delivered_.erase(fd); }
  // A frame of so many bytes came out of connection `fd`.
  void Delivered(int fd, size_t frame_bytes);

  // Shuts the connections down that are over the limit, when the last look is kInterval ago;
  // returns how many. The owner calls it at least every kInterval while there are
  // connections.
  int Check(TimeUs now);
  // Shuts a connection down, if `fd` still is one that was accepted here.
  void Cut(int fd) const;
  bool idle() const { return delivered_.empty(); }

 private:
  // Bytes received and not yet delivered; negative when `fd` is no longer an accepted connection.
  int64_t Backlog(int fd, int64_t delivered) const;

  const int port_;
  const int64_t limit_;
  const size_t frame_overhead_;
  TimeUs next_check_ = 0;
  std::unordered_map<int, int64_t> delivered_;  // by descriptor
};

}  // namespace kumo
