// A client's connection to server 0 of a running job.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/transport/message.h"
#include "common/transport/zmq_transport.h"

namespace kumo {

struct JobAddress {
  std::string address;  // of server 0
  std::string keys;     // cluster.keys; "": none
};

class ServerConnection {
 public:
  // job: of the messages' headers; 0: not known, and only what anybody may ask is answered.
  // InvalidArgument for what is no address; the errors of ReadKeys.
  static Result<std::unique_ptr<ServerConnection>> Open(const JobAddress& to, uint64_t job = 0);

  // Asks until an answer of that type comes. Unavailable, naming the address, when none comes
  // within timeout_ms.
  Result<Message> Ask(wire::Type question, wire::Type answer, int timeout_ms);

  // Best effort: lost where the connection is not there just now.
  void Say(Message message) { (void)transport_->Send(ServerPeer(0), std::move(message)); }
  // Waits so long at most for messages, and hands them over.
  void Listen(TimeUs timeout_us, const std::function<void(Message)>& on_message);

 private:
  ServerConnection(JobAddress to, std::unique_ptr<ZmqTransport> transport)
      : to_(std::move(to)), transport_(std::move(transport)) {}

  const JobAddress to_;
  const std::unique_ptr<ZmqTransport> transport_;
};

}  // namespace kumo
