#include "cli/launch/server_addresses.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "common/base/address.h"
#include "common/base/file.h"
#include "common/base/text.h"

namespace kumo {

Result<std::vector<ReservedPort>> ReservePorts(int count) {
  std::vector<ReservedPort> ports;
  for (int i = 0; i < count; ++i) {
    KUMO_ASSIGN_OR_RETURN(ReservedPort port, ReservedPort::Take());
    ports.push_back(std::move(port));
  }
  return ports;
}

AddressTrial::~AddressTrial() {
  for (const Held& held : held_) close(held.listener.fd);
}

std::vector<std::string> AddressTrial::GiveUp(int port) {
  std::vector<std::string> names;
  std::erase_if(held_, [&](const Held& held) {
    if (held.listener.address.port != port) return false;
    close(held.listener.fd);
    names.push_back(held.text);
    return true;
  });
  return names;
}

Status AddressTrial::Try(const std::string& text, bool may_be_open) {
  KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  if (address.kind == Address::Kind::kIpc) {
    KUMO_RETURN_IF_ERROR(CheckIpcFree(address));
    if (address.path.front() == '@') return OkStatus();
    PosixFileSystem files;
    return files.CheckWritable(DirectoryOf(address.path));
  }
  Result<Listener> listener = ListenTcp(address, may_be_open);
  std::vector<std::string> same;
  if (listener.status().code() == StatusCode::kUnavailable) {
    // Another process has it, or this trial.
    same = GiveUp(address.port);
    if (!same.empty()) listener = ListenTcp(address, may_be_open);
  }
  KUMO_RETURN_IF_ERROR(listener.status());
  held_.push_back({text, *listener});
  if (same.empty()) return OkStatus();
  return FailedPrecondition(text + " and " + Join(same) +
                            " are one address; choose another port for one of them");
}

Status IsForOneMachine(const Experiment& experiment) {
  for (const std::string& text : experiment.cluster.servers) {
    KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
    if (address.kind == Address::Kind::kIpc || IsLoopbackHost(address.host)) continue;
    return FailedPrecondition("cluster.servers names " + text +
                              ", which is not this machine; start processes on other machines with "
                              "kumo launch --hosts, or train on this machine alone with --set "
                              "cluster.servers=");
  }
  return OkStatus();
}

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
