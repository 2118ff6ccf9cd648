// Owners of the ZeroMQ C API's handles. The C API is used instead of cppzmq because it reports
// errors by return codes, so no exception can leave the transport.
//
// A context is thread-safe; a socket is used by one thread at a time.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>

#include <zmq.h>

namespace kumo {

struct ZmqContextCloser {
  // Waits until the I/O threads have sent the queued messages or the sockets' linger has passed.
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

// One frame. Any thread may close it: ZeroMQ counts references atomically.
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
