#include "common/transport/connection_guards.h"

#include <sys/socket.h>

#include <iterator>

#include <glog/logging.h>
#include <linux/tcp.h>
#include <netinet/in.h>

// The kernel's own tcp_info: glibc's ends before tcpi_bytes_received.

namespace kumo {

namespace {

int LocalPort(int fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) return -1;
  if (name.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in&>(name).sin_port);
  if (name.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6&>(name).sin6_port);
  return -1;
}

}  // namespace

void BacklogGuard::Delivered(int fd, size_t frame_bytes) {
  // ZMTP adds a flags byte and a length of 1 or 8 bytes to each frame.
  const size_t sent = frame_bytes + frame_overhead_;
  const size_t overhead = sent < 256 ? 2 : 9;
  const auto entry = delivered_.find(fd);
  if (entry != delivered_.end()) entry->second += static_cast<int64_t>(sent + overhead);
}

// ZeroMQ closes its end after the shutdown. A peer with a closed window would learn of a plain
// close only when the kernel forgets the connection; a reset reaches it at once.
void BacklogGuard::Cut(int fd) const {
  // The descriptor may have been closed and reused.
  if (LocalPort(fd) != port_) return;
  const linger reset{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  shutdown(fd, SHUT_RDWR);
}

int64_t BacklogGuard::Backlog(int fd, int64_t delivered) const {
  // As in Cut: the descriptor may have been reused.
  if (LocalPort(fd) != port_) return -1;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return -1;
  const auto received = static_cast<int64_t>(info.tcpi_bytes_received);
  return received > delivered ? received - delivered : 0;
}

int BacklogGuard::Check(TimeUs now) {
  if (now < next_check_) return 0;
  next_check_ = now + kInterval;
  int cut = 0;
  for (auto it = delivered_.begin(); it != delivered_.end();) {
    const int64_t backlog = Backlog(it->first, it->second);
    if (backlog > limit_) {
      LOG(WARNING) << "closed the connection of a peer that sent " << backlog
                   << " bytes without completing a message";
      Cut(it->first);
      ++cut;
    }
    it = backlog < 0 || backlog > limit_ ? delivered_.erase(it) : std::next(it);
  }
  return cut;
}

void PendingConnections::Accepted(int fd) {
  // The descriptor was reused before its last connection was reported closed.
  Closed(fd);
  places_[fd] = silent_.insert(silent_.end(), fd);
  if (silent_.size() <= kMost) return;
  const int oldest = silent_.front();
  Closed(oldest);
  end_(oldest);
}

void PendingConnections::Spoke(int fd) {
  const auto place = places_.find(fd);
  if (place == places_.end()) return;
  silent_.erase(place->second);
  places_.erase(place);
}

void PendingConnections::Closed(int fd) {
  if (!places_.contains(fd)) return;
  Spoke(fd);
  ++left_;
  LOG_EVERY_T(WARNING, 1) << "a connection ended without a message, probably of a peer without a "
                          << "key of this job (" << left_ << " so far)";
}

}  // namespace kumo
