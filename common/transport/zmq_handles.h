// Owners of what the ZeroMQ C API hands out.
//
// We use the C API, not cppzmq: it reports by return codes, so no exception can leave the
// transport, and these three are all the ownership that it needs.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>

#include <zmq.h>

namespace kumo {

struct ZmqContextCloser {
  // Waits until the I/O threads have sent what is queued or the sockets' linger is over.
  void operator()(void* context) const {
    while (zmq_ctx_term(context) != 0 && errno == EINTR) {
    }
  }
};
using ZmqContext = std::unique_ptr<void, ZmqContextCloser>;

struct ZmqSocketCloser {
  void operator()(void* socket) const { zmq_close(socket); }
};
using ZmqSocket = std::unique_ptr<void, ZmqSocketCloser>;

// One frame. Closed by any thread: ZeroMQ counts references atomically.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&frame_); }
  ~ZmqFrame() { zmq_msg_close(&frame_); }
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;

  zmq_msg_t* get() { return &frame_; }
  std::span<const std::byte> bytes() {
    return {static_cast<const std::byte*>(zmq_msg_data(&frame_)), zmq_msg_size(&frame_)};
  }
  bool more() { return zmq_msg_more(&frame_) != 0; }

 private:
  zmq_msg_t frame_;
};

}  // namespace kumo
