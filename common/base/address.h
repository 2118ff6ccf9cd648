// Network addresses: tcp://host:port or ipc://path, and the sockets that listen on them.
//
// Kumo opens listening sockets itself and hands them to ZeroMQ. So errors can be explained, the
// bound address is known before the first peer connects, and options of the listening socket
// (congestion control) apply to every accepted connection.
//
// Values and functions; thread-safe. Resolving a name may block as long as the resolver does.
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace kumo {

struct Address {
  enum class Kind { kTcp, kIpc };
  Kind kind = Kind::kTcp;
  // tcp: a name, a number, or "*" for all interfaces, IPv4 and IPv6 (listening only)
  std::string host;
  int port = 0;      // tcp: 0 for any free port (listening only)
  std::string path;  // ipc: a file, or "@name" in Linux's abstract namespace

  std::string ToString() const;  // in ZeroMQ's syntax
  bool operator==(const Address&) const = default;
};

// InvalidArgument with the expected form. Names are not resolved.
Result<Address> ParseAddress(std::string_view text);

// Parses HOST:PORT of an HTTP server; "*" and port 0 as above. InvalidArgument likewise.
Result<Address> ParseHttpAddress(std::string_view text);

// True for hosts that always mean this machine: 127.x.y.z, ::1, localhost.
bool IsLoopbackHost(std::string_view host);

// True if the other end of this connected socket is on this machine's loopback interface.
bool IsLoopbackConnection(int fd);

// A bound, listening, non-blocking socket. Its owner closes it (ZeroMQ does, once it has the
// socket).
struct Listener {
  int fd = -1;
  Address address;     // with the number and port that were actually bound
  bool local = false;  // only processes of this machine can reach it
};

// Requires a tcp address. A name may have IPv4 and IPv6 addresses; the first that this machine has
// is taken, IPv4 before IPv6. FailedPrecondition: the address would be open to other machines
// although `may_be_open` is not set, the host name is unknown, or the host is not this machine's;
// Unavailable: another process listens there.
Result<Listener> ListenTcp(const Address& address, bool may_be_open);

// Requires an ipc address. Unavailable if a process listens there; FailedPrecondition if the path
// cannot become a socket (too long, no such folder, another kind of file). The socket of a dead
// process is ok.
Status CheckIpcFree(const Address& address);

// Selects a congestion control for loopback: with BBR, the default of some machines, loopback runs
// at half its speed. If the kernel refuses, its default stays.
void UseLoopbackCongestionControl(int fd);

}  // namespace kumo
