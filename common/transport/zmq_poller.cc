#include "common/transport/zmq_poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

int TimeoutMs(TimeUs timeout_us) {
  if (timeout_us < 0) return -1;
  const TimeUs ms = (timeout_us + kMillisecond - 1) / kMillisecond;
  return static_cast<int>(std::min<TimeUs>(ms, std::numeric_limits<int>::max()));
}

}  // namespace

Result<std::unique_ptr<ZmqPoller>> ZmqPoller::Make() {
  const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) return Internal(std::string("cannot create an eventfd: ") + strerror(errno));
  return std::unique_ptr<ZmqPoller>(new ZmqPoller(wake_fd));
}

ZmqPoller::~ZmqPoller() { close(wake_fd_); }

void ZmqPoller::AddFd(int fd, std::function<void()> on_readable) {
  fds_.push_back({items_.size(), std::move(on_readable)});
  items_.push_back({nullptr, fd, ZMQ_POLLIN, 0});
}

int ZmqPoller::Wait(TimeUs timeout_us) {
  const int events =
      zmq_poll(items_.data(), static_cast<int>(items_.size()), TimeoutMs(timeout_us));
  if (events >= 0) return events;
  if (zmq_errno() != EINTR) LOG(ERROR) << "cannot wait for messages: " << zmq_strerror(zmq_errno());
  for (auto& item : items_) item.revents = 0;
  return -1;
}

void ZmqPoller::ServeDescriptors() {
  if (items_[0].revents != 0) {
    uint64_t wakes = 0;
    (void)!read(wake_fd_, &wakes, sizeof wakes);
    // Clear the flag after the read: a Wake in between finds the flag set, and this return of Wait
    // serves it.
    wake_pending_.exchange(false);
  }
  const size_t watched = fds_.size();
  for (size_t i = 0; i < watched; ++i) {
    if (items_[fds_[i].item].revents != 0) fds_[i].on_readable();
  }
}

void ZmqPoller::Wake() {
  if (wake_pending_.exchange(true)) return;
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof one);
}

}  // namespace kumo
