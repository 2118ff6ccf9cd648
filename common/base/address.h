// Where a process listens or connects: tcp://host:port or ipc://path.
//
// We open listening sockets ourselves and hand them to ZeroMQ: so the person is told what is wrong
// in words, the address that is really bound is known before anybody is let in, and what is set on
// the listening socket (congestion control) holds for every connection accepted from it.
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
  std::string host;  // tcp: a name, a number, or "*" for every interface (to listen only)
  int port = 0;      // tcp: 0 for any free one (to listen only)
  std::string path;  // ipc: a file, or "@name" in Linux's abstract namespace

  std::string ToString() const;  // as ZeroMQ and people write it
  bool operator==(const Address&) const = default;
};

// InvalidArgument says what an address must look like. Names are not looked up.
Result<Address> ParseAddress(std::string_view text);

// HOST:PORT, where HTTP is served; "*" and port 0 as above. InvalidArgument likewise.
Result<Address> ParseHttpAddress(std::string_view text);

// True for hosts that are this machine whatever a resolver says: 127.x.y.z, ::1, localhost.
bool IsLoopbackHost(std::string_view host);

// True when the other end of this connected socket is on this machine's loopback interface.
bool IsLoopbackConnection(int fd);

// A bound, listening, non-blocking socket. Whoever gets it closes it (ZeroMQ does, once it has it).
struct Listener {
  int fd = -1;
  Address address;     // with the number and port that were really bound
  bool local = false;  // only processes of this machine can reach it
};

// Requires a tcp address. FailedPrecondition: the address would be open to other machines and
// `may_be_open` is not set, the host name is unknown, or the host is not this machine's;
// Unavailable: another process listens there.
Result<Listener> ListenTcp(const Address& address, bool may_be_open);

// Requires an ipc address. Unavailable when a process listens there; FailedPrecondition when the
// path cannot be made a socket (too long, no such folder, a file that is something else). A socket
// that a dead process left behind is fine.
Status CheckIpcFree(const Address& address);

// Asks for a congestion control that suits memory instead of a network: with BBR, the default of
// some machines, loopback runs at half its speed. A kernel that refuses keeps its own.
void UseLoopbackCongestionControl(int fd);

}  // namespace kumo
