#include "common/transport/backlog_guard.h"

#include <netinet/in.h>
#include <sys/socket.h>
// The kernel's tcp_info: glibc's ends before tcpi_bytes_received.
#include <linux/tcp.h>

#include <glog/logging.h>

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
  // ZMTP puts a byte of flags and a length of 1 or 8 bytes in front of a frame.
  const size_t sent = frame_bytes + frame_overhead_;
  const size_t overhead = sent < 256 ? 2 : 9;
  const auto entry = delivered_.find(fd);
  if (entry != delivered_.end()) entry->second += static_cast<int64_t>(sent + overhead);
}

// ZeroMQ closes on the end of the stream. The peer, whose window is maybe closed, would hear of a
// plain close only when the kernel forgets the connection; a reset it hears at once.
void BacklogGuard::Cut(int fd) const {
  // The descriptor may have been closed, and even be somebody else's by now.
  if (LocalPort(fd) != port_) return;
  const linger reset{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  shutdown(fd, SHUT_RDWR);
}

int64_t BacklogGuard::Backlog(int fd, int64_t delivered) const {
  // As in Cut.
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
      LOG(WARNING) << "a peer sent " << backlog << " bytes that are no complete messages; "
                   << "its connection is closed";
      Cut(it->first);
      ++cut;
    }
    it = backlog < 0 || backlog > limit_ ? delivered_.erase(it) : std::next(it);
  }
  return cut;
}

}  // namespace kumo
