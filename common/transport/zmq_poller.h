// Poller for ZeroMQ sockets, other descriptors, and wake-ups from other threads.
//
// Thread-safety: one loop thread makes all calls; any thread may call Wake.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace kumo {

class ZmqPoller {
 public:
  // Internal if there are no free descriptors.
  static Result<std::unique_ptr<ZmqPoller>> Make();
  ~ZmqPoller();
  ZmqPoller(const ZmqPoller&) = delete;
  ZmqPoller& operator=(const ZmqPoller&) = delete;

  // Sockets and descriptors must outlive the poller or its last Wait.
  void AddSocket(void* socket) { items_.push_back({socket, 0, ZMQ_POLLIN, 0}); }
  void AddFd(int fd, std::function<void()> on_readable);

  // Waits up to timeout_us (< 0: without limit) for readable sockets or descriptors. Returns their
  // number, or -1 if a signal interrupted the wait.
  int Wait(TimeUs timeout_us);
  // Calls on_readable of the descriptors that the last Wait found readable. The callbacks may add
  // descriptors.
  void ServeDescriptors();

  // Ends the current or the next Wait. Any thread may call it; repeated calls are cheap.
  void Wake();

 private:
  struct WatchedFd {
    size_t item = 0;
    std::function<void()> on_readable;
  };

  explicit ZmqPoller(int wake_fd) : wake_fd_(wake_fd), items_{{nullptr, wake_fd, ZMQ_POLLIN, 0}} {}

  const int wake_fd_;
  std::atomic<bool> wake_pending_{false};
  std::vector<zmq_pollitem_t> items_;  // the first is wake_fd_'s
  std::deque<WatchedFd> fds_;          // a deque: a running callback stays in place
};

}  // namespace kumo
