// Whoever speaks ZeroMQ to one of our ports, and says there what it likes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <glog/logging.h>

#include "common/transport/peer_names.h"
#include "common/transport/zmq_handles.h"

namespace kumo {

// What a connection opens with that is of one process of that name.
inline std::string IdOf(const std::string& name) { return name.empty() ? "" : RoutingId(name, 7); }

// A ZeroMQ socket that speaks the protocol below ours correctly.
class Intruder {
 public:
  // id: what the connection opens with. reconnect_ms: 0 for ZeroMQ's own.
  Intruder(const std::string& address, const std::string& id, int reconnect_ms = 0)
      : context_(zmq_ctx_new()), socket_(zmq_socket(context_.get(), ZMQ_DEALER)) {
    const int linger = 0;
    zmq_setsockopt(socket_.get(), ZMQ_LINGER, &linger, sizeof linger);
    if (reconnect_ms > 0) {
      zmq_setsockopt(socket_.get(), ZMQ_RECONNECT_IVL, &reconnect_ms, sizeof reconnect_ms);
    }
    if (!id.empty()) zmq_setsockopt(socket_.get(), ZMQ_ROUTING_ID, id.data(), id.size());
    CHECK_EQ(zmq_connect(socket_.get(), address.c_str()), 0);
  }
  void Send(const std::vector<std::string>& frames) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      CHECK_GE(zmq_send(socket_.get(), frames[i].data(), frames[i].size(), flags), 0);
    }
  }
  // Not a word where the connection is not there.
  void Try(const std::string& frame) {
    (void)zmq_send(socket_.get(), frame.data(), frame.size(), ZMQ_DONTWAIT);
  }
  void* socket() { return socket_.get(); }

 private:
  ZmqContext context_;
  ZmqSocket socket_;
};

}  // namespace kumo
