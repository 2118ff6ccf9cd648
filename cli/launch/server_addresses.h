// Server addresses of a job on this machine: free ports, and checks of given addresses. Stateless
// functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/address.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

// Reserved port: a free port of 127.0.0.1 for a process to be started. No other process gets it
// meanwhile, nor between the death of that process and the start of its successor.
//
// The socket is bound but does not listen. Linux lets one other socket listen at the address if
// both have SO_REUSEADDR, as ListenTcp's have, and does not assign the port to processes that ask
// for any free port.
//
// Owned by the parent of the process; movable. Children do not inherit it.
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

// Reserves `count` different free ports of 127.0.0.1.
Result<std::vector<ReservedPort>> ReservePorts(int count);

// Address trial: listens at the addresses of a job, all at the same time, so that two names of one
// address are noticed. Gives them up at its end. One thread.
class AddressTrial {
 public:
  AddressTrial() = default;
  ~AddressTrial();
  AddressTrial(const AddressTrial&) = delete;
  AddressTrial& operator=(const AddressTrial&) = delete;

  // Checks that this process could listen at `address`. FailedPrecondition if the address is not
  // this machine's, is the same as an earlier one of this trial, or would be open to other machines
  // although `may_be_open` is not set (no keys, and no permission).
  Status Try(const std::string& address, bool may_be_open);

 private:
  struct Held {
    std::string text;
    Listener listener;
  };
  // Gives up the held addresses with this port; returns their names.
  std::vector<std::string> GiveUp(int port);

  std::vector<Held> held_;
};

// FailedPrecondition if cluster.servers names another machine than this one, because kumo launch
// starts the processes of one machine.
Status IsForOneMachine(const Experiment& experiment);

}  // namespace kumo
