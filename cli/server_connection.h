// A client's connection to server 0 of a running job.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/job/transport/message.h"
#include "common/job/transport/zmq_transport.h"

namespace kumo {

class ServerConnection {
 public:
  // job: of the messages' headers; 0: not known, and only what anybody may ask is answered.
  // InvalidArgument for what is no address.
  static Result<std::unique_ptr<ServerConnection>> Open(const std::string& address,
                                                        uint64_t job = 0);

  // Asks until an answer of that type comes. Unavailable, naming the address, when none comes
  // within timeout_ms.
  Result<Message> Ask(wire::Type question, wire::Type answer, int timeout_ms);

  // Best effort: lost where the connection is not there just now.
  void Say(Message message) { (void)transport_->Send(ServerPeer(0), std::move(message)); }
  // Waits so long at most for messages, and hands them over.
  void Listen(TimeUs timeout_us, const std::function<void(Message)>& on_message);

 private:
  ServerConnection(std::string address, std::unique_ptr<ZmqTransport> transport)
      : address_(std::move(address)), transport_(std::move(transport)) {}

  const std::string address_;
  const std::unique_ptr<ZmqTransport> transport_;
};

}  // namespace kumo
