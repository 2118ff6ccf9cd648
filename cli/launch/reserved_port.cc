#include "cli/launch/reserved_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kumo {

Result<ReservedPort> ReservedPort::Take() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return Unavailable(std::string("a socket for a free port: ") + std::strerror(errno));
  ReservedPort reserved(fd, 0);
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(fd, any, length) != 0 || getsockname(fd, any, &length) != 0) {
    return Unavailable(std::string("a free port of 127.0.0.1: ") + std::strerror(errno));
  }
  reserved.port_ = ntohs(address.sin_port);
  return reserved;
}

ReservedPort::~ReservedPort() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace kumo
