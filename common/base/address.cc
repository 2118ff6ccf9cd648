#include "common/base/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/base/text.h"

namespace kumo {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr size_t kLongestIpcPath = sizeof(sockaddr_un{}.sun_path) - 1;

Status BadAddress(std::string_view text, std::string_view why) {
  return InvalidArgument("address '" + std::string(text) + "' " + std::string(why) +
                         "; write tcp://HOST:PORT or ipc://PATH");
}

Result<Address> ParseTcp(std::string_view text) {
  const std::string_view rest = text.substr(kTcp.size());
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return BadAddress(text, "has no port");
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return BadAddress(text, "has an IPv6 number without [brackets]");
  }
  if (host.empty() || host.size() > NI_MAXHOST) return BadAddress(text, "has no host");
  for (const char c : host) {
    if (std::strchr("/;@ \t\n", c) != nullptr) return BadAddress(text, "has an invalid host");
  }
  Address address{Address::Kind::kTcp, std::string(host), 0, ""};
  if (port == "*") return address;
  address.port = ParseNumber<int>(port).value_or(-1);
  if (address.port < 0 || address.port > 65535) {
    return BadAddress(text, "has a port that is not a number from 0 to 65535");
  }
  return address;
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127);
  }
  return address.ss_family == AF_UNIX;
}

struct Resolved {
  sockaddr_storage address{};
  socklen_t length = 0;
};

// The addresses of a host to listen on, the preferred one first. "*" is every IPv6 address, which
// on Linux includes IPv4, and every IPv4 address for kernels without IPv6. A name that has
// addresses of both families prefers IPv4, as peers do (ZmqLink).
Result<std::vector<Resolved>> Resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_family = address.host.find(':') != std::string::npos ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const bool every = address.host == "*";
  const char* host = every ? nullptr : address.host.c_str();
  const int error = getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
  if (error == EAI_AGAIN || error == EAI_MEMORY || error == EAI_SYSTEM) {
    return Unavailable("cannot listen on " + address.ToString() + ": host '" + address.host +
                       "' cannot be looked up now (" + gai_strerror(error) + ")");
  }
  if (error != 0) {
    return FailedPrecondition("cannot listen on " + address.ToString() + ": host '" + address.host +
                              "' is unknown on this machine (" + gai_strerror(error) +
                              "); use a name or number of this machine, or * for all interfaces");
  }
  std::vector<Resolved> all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    Resolved& resolved = all.emplace_back();
    resolved.length = one->ai_addrlen;
    std::memcpy(&resolved.address, one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  const sa_family_t preferred = every ? AF_INET6 : AF_INET;
  std::stable_partition(all.begin(), all.end(),
                        [&](const Resolved& one) { return one.address.ss_family == preferred; });
  return all;
}

Status ListenError(const Address& address, int error) {
  const std::string where = address.ToString();
  switch (error) {
    case EADDRINUSE:
      return Unavailable(where + " is in use; choose another port or stop the process that has it" +
                         " (ss -ltnp shows it)");
    case EADDRNOTAVAIL:
      return FailedPrecondition(
          "cannot listen on " + where + ": '" + address.host +
          "' is not an address of this machine; use one, or * for all interfaces");
    case EACCES:
      return FailedPrecondition(
          "cannot listen on " + where +
          ": not permitted; ports below 1024 are reserved for root, choose another");
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return ResourceExhausted("cannot listen on " + where + ": " + std::strerror(error));
    default:
      return FailedPrecondition("cannot listen on " + where + ": " + std::strerror(error));
  }
}

// Returns a listening socket, or -1 with errno.
int ListenAt(const Resolved& resolved, bool local) {
  const int family = resolved.address.ss_family;
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd < 0) return -1;
  const int yes = 1, no = 0;
  // A port whose last owner has just died is free; only a listening socket blocks it.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // Every IPv6 address includes every IPv4 address, whatever the machine's default is.
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (local) UseLoopbackCongestionControl(fd);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&resolved.address), resolved.length) == 0 &&
      listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// Fills in the kernel's choice for "any": the port, and the number of a name.
Address BoundAddress(const Address& asked, int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  auto* raw = reinterpret_cast<sockaddr*>(&bound);
  if (getsockname(fd, raw, &length) != 0 ||
      getnameinfo(raw, length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return asked;
  }
  Address address = asked;
  address.host = host;
  address.port = ParseNumber<int>(port).value_or(address.port);
  return address;
}

}  // namespace

std::string Address::ToString() const {
  if (kind == Kind::kIpc) return std::string(kIpc) + path;
  const bool v6 = host.find(':') != std::string::npos;
  return std::string(kTcp) + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> ParseAddress(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return BadAddress("?", "contains a zero byte");
  if (text.starts_with(kTcp)) return ParseTcp(text);
  if (!text.starts_with(kIpc)) return BadAddress(text, "is neither tcp nor ipc");
  const std::string path(text.substr(kIpc.size()));
  if (path.empty() || path == "@") return BadAddress(text, "has no path");
  if (path.size() > kLongestIpcPath) {
    return BadAddress(text, "is longer than " + std::to_string(kLongestIpcPath) +
                                " bytes, the limit of a socket's path");
  }
  return Address{Address::Kind::kIpc, "", 0, path};
}

Result<Address> ParseHttpAddress(std::string_view text) {
  Result<Address> address = ParseAddress("tcp://" + std::string(text));
  if (text.find("://") != std::string_view::npos || !address.ok()) {
    return InvalidArgument("'" + std::string(text) +
                           "' is no address for HTTP: use HOST:PORT, such as 127.0.0.1:9470, "
                           "*:9470 for all interfaces, or port 0 for any free port");
  }
  return address;
}

bool IsLoopbackHost(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr number{};
  return inet_pton(AF_INET, std::string(host).c_str(), &number) == 1 &&
         (ntohl(number.s_addr) >> 24) == 127;
}

bool IsLoopbackConnection(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && IsLoopback(peer);
}

Result<Listener> ListenTcp(const Address& address, bool may_be_open) {
  CHECK(address.kind == Address::Kind::kTcp);
  KUMO_ASSIGN_OR_RETURN(const std::vector<Resolved> all, Resolve(address));
  int error = EADDRNOTAVAIL;
  for (const Resolved& resolved : all) {
    const bool local = IsLoopback(resolved.address);
    if (!local && !may_be_open) {
      return FailedPrecondition(
          address.ToString() +
          " can be reached from other machines without keys: set cluster.keys to a folder that "
          "`kumo keys` made; on a trusted network set cluster.insecure=true; or listen on "
          "127.0.0.1 only");
    }
    const int fd = ListenAt(resolved, local);
    if (fd >= 0) return Listener{fd, BoundAddress(address, fd), local};
    error = errno;
    // A family that this machine lacks, or an address that it does not have.
    if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) break;
  }
  return ListenError(address, error);
}

Status CheckIpcFree(const Address& address) {
  CHECK(address.kind == Address::Kind::kIpc);
  const std::string where = address.ToString();
  const bool abstract = address.path.front() == '@';
  struct stat info {};
  if (!abstract && stat(address.path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    return FailedPrecondition(where + " is a file that is not a socket; choose another path");
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ListenError(address, errno);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  if (abstract) name.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.path.size() +
                                             (abstract ? 0 : 1));
  const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&name), length);
  const int error = errno;
  close(fd);
  // EAGAIN: a process listens and its backlog is full.
  if (rc == 0 || error == EAGAIN) {
    return Unavailable(where + " is in use; choose another path or stop the process that has it");
  }
  return OkStatus();
}

void UseLoopbackCongestionControl(int fd) {
  // Reno is in every kernel and needs no privileges.
  constexpr char kReno[] = "reno";
  (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof kReno - 1);
}

}  // namespace kumo
