#include "common/transport/connection_guards.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <glog/logging.h>
#include <linux/sockios.h>
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
  const auto entry = connections_.find(fd);
  if (entry != connections_.end()) entry->second.delivered += static_cast<int64_t>(sent + overhead);
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

// Bytes that come between the two questions to the kernel count as unread only: ZeroMQ's part is
// never larger than it was.
std::optional<BacklogGuard::Backlog> BacklogGuard::BacklogOf(int fd, int64_t delivered) const {
  // As in Cut: the descriptor may have been reused.
  if (LocalPort(fd) != port_) return std::nullopt;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  int unread = 0;
  if (ioctl(fd, SIOCINQ, &unread) != 0) return std::nullopt;
  const int64_t all =
      std::max<int64_t>(static_cast<int64_t>(info.tcpi_bytes_received) - delivered, 0);
  return Backlog{all, std::max<int64_t>(all - unread, 0)};
}

int BacklogGuard::Check(TimeUs now) {
  if (now < next_check_) return 0;
  next_check_ = now + kInterval;
  const bool drained = std::exchange(drained_, false);
  int cut = 0;
  for (auto it = connections_.begin(); it != connections_.end();) {
    auto& [fd, connection] = *it;
    const std::optional<Backlog> backlog = BacklogOf(fd, connection.delivered);
    if (!backlog) {
      it = connections_.erase(it);
      continue;
    }
    connection.least = std::min(connection.least, backlog->in_zmq);
    const bool is_long = backlog->in_zmq - connection.least > limits_.message;
    const bool endless = is_long && drained && connection.long_at == connection.delivered;
    connection.long_at = is_long ? connection.delivered : -1;
    if (!endless && backlog->all <= limits_.all) {
      ++it;
      continue;
    }
    LOG(WARNING) << "closed the connection of a peer that sent " << backlog->all
                 << " bytes without completing a message";
    Cut(fd);
    ++cut;
    it = connections_.erase(it);
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
