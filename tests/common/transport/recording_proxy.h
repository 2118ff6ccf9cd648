// Stands between one client and a server on this machine, passes everything on, and keeps what went
// by, as whoever taps the wire could.
//
// A thread of its own serves one connection after the other.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include <glog/logging.h>

namespace kumo {

// A connected socket; 127.0.0.1.
inline int ConnectToPort(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  PCHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

inline int PortIn(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

class RecordingProxy {
 public:
  explicit RecordingProxy(int server_port)
      : server_port_(server_port), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    PCHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    PCHECK(listen(listener_, 8) == 0);
    PCHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~RecordingProxy() {
    stop_ = true;
    thread_.join();
    close(listener_);
  }
  RecordingProxy(const RecordingProxy&) = delete;
  RecordingProxy& operator=(const RecordingProxy&) = delete;

  std::string address() const { return "tcp://127.0.0.1:" + std::to_string(port_); }
  // What clients have sent so far, of all connections.
  std::string sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

 private:
  // False at the end of the stream.
  bool Pass(int from, int to, bool record) {
    std::array<char, 65536> buffer{};
    const ssize_t got = recv(from, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    if (record) {
      const std::lock_guard lock(mutex_);
      sent_.append(buffer.data(), static_cast<size_t>(got));
    }
    return send(to, buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL) == got;
  }
  void Serve() {
    while (!stop_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (poll(&waiting, 1, 10) <= 0) continue;
      const int client = accept(listener_, nullptr, nullptr);
      const int server = ConnectToPort(server_port_);
      for (bool open = true; open && !stop_;) {
        std::array<pollfd, 2> ends = {{{client, POLLIN, 0}, {server, POLLIN, 0}}};
        if (poll(ends.data(), ends.size(), 10) <= 0) continue;
        if (ends[0].revents != 0) open = Pass(client, server, true);
        if (open && ends[1].revents != 0) open = Pass(server, client, false);
      }
      close(client);
      close(server);
    }
  }

  const int server_port_;
  const int listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::string sent_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace kumo
