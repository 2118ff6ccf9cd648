// A free port of 127.0.0.1 for a process that is to be started: nobody else on this machine is
// given it meanwhile, nor between that process's death and its successor's start.
//
// The socket is bound and does not listen. Linux lets one other socket listen at its address where
// both have SO_REUSEADDR, as ListenTcp's have, and gives the port to nobody who asks for any free
// one, to listen or to connect from.
//
// Owned by whoever starts the process; movable. Children do not inherit it.
#pragma once

#include <string>
#include <utility>

#include "common/base/status.h"

namespace kumo {

class ReservedPort {
 public:
  static Result<ReservedPort> Take();

  ReservedPort(ReservedPort&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}
  ~ReservedPort();

  std::string host_and_port() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  ReservedPort(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;
  int port_;
};

}  // namespace kumo
