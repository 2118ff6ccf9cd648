// Waits for ZeroMQ sockets, for other descriptors, and for a word from another thread.
//
// Thread-safety: one loop thread makes all the calls; only Wake may come from anywhere.
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
  // Internal where there are no descriptors left.
  static Result<std::unique_ptr<ZmqPoller>> Make();
  ~ZmqPoller();
  ZmqPoller(const ZmqPoller&) = delete;
  ZmqPoller& operator=(const ZmqPoller&) = delete;

  // Either is borrowed until the poller ends, or for its last Wait.
  void AddSocket(void* socket) { items_.push_back({socket, 0, ZMQ_POLLIN, 0}); }
  void AddFd(int fd, std::function<void()> on_readable);

  // Waits up to timeout_us (< 0: without limit), which a signal ends early, for something to read.
  // How many sockets and descriptors have it; -1 where a signal came.
  int Wait(TimeUs timeout_us);
  // Calls on_readable of those descriptors that the last Wait found readable. They may add others.
  void ServeDescriptors();

  // Makes the current or the next Wait return. Any thread may call it; it is cheap when repeated.
  void Wake();

 private:
  struct WatchedFd {
    size_t item = 0;
    std::function<void()> on_readable;
  };

  explicit ZmqPoller(int wake_fd) : wake_fd_(wake_fd), items_{{nullptr, wake_fd, ZMQ_POLLIN, 0}} {}

  const int wake_fd_;
  std::atomic<bool> wake_pending_{false};
  std::vector<zmq_pollitem_t> items_;  // that of wake_fd_ is the first
  std::deque<WatchedFd> fds_;          // does not move what is being called
};

}  // namespace kumo
