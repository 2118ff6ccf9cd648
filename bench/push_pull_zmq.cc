// Contender: a bare ZeroMQ pair, DEALER and ROUTER, with a 16-byte header frame and a payload frame
// without copies. It has its best settings: unlimited queues, the loopback's congestion control on
// both ends, a tuned allocator.
#include <cstdint>
#include <cstring>
#include <memory>

#include <glog/logging.h>

#include "bench/push_pull.h"
#include "common/base/address.h"
#include "common/base/buffer.h"
#include "common/transport/zmq_handles.h"

namespace kumo::bench {
namespace {

struct Header {
  uint64_t type = 0;  // 0 push, 1 acknowledgement, 2 pull, 3 chunk
  uint64_t chunk = 0;
};

void KeepData(void*, void*) {}

void Send(void* socket, ZmqFrame* to, Header header, std::span<float> payload) {
  if (to != nullptr) {
    zmq_msg_t copy;
    zmq_msg_init(&copy);
    zmq_msg_copy(&copy, to->get());
    CHECK_GE(zmq_msg_send(&copy, socket, ZMQ_SNDMORE), 0);
  }
  const int more = payload.empty() ? 0 : ZMQ_SNDMORE;
  CHECK_GE(zmq_send(socket, &header, sizeof header, more), 0);
  if (payload.empty()) return;
  zmq_msg_t frame;
  zmq_msg_init_data(&frame, payload.data(), payload.size_bytes(), KeepData, nullptr);
  CHECK_GE(zmq_msg_send(&frame, socket, 0), 0);
}

void SetInt(void* socket, int option, int value) {
  CHECK_EQ(zmq_setsockopt(socket, option, &value, sizeof value), 0);
}

void Serve(const Model& model, int report_fd) {
  ZmqContext context(zmq_ctx_new());
  ZmqSocket socket(zmq_socket(context.get(), ZMQ_ROUTER));
  SetInt(socket.get(), ZMQ_SNDHWM, 0);
  SetInt(socket.get(), ZMQ_RCVHWM, 0);
  const Result<Listener> listener = ListenTcp(*ParseAddress("tcp://127.0.0.1:*"), false);
  CHECK(listener.ok()) << listener.status().message();
  SetInt(socket.get(), ZMQ_USE_FD, listener->fd);
  CHECK_EQ(zmq_bind(socket.get(), listener->address.ToString().c_str()), 0);
  Buffer<float> sums(model.floats);
  Report(report_fd, listener->address.ToString());
  while (true) {
    ZmqFrame from;
    ZmqFrame first;
    ZmqFrame payload;
    CHECK_GE(zmq_msg_recv(from.get(), socket.get(), 0), 0);
    CHECK_GE(zmq_msg_recv(first.get(), socket.get(), 0), 0);
    Header header;
    std::memcpy(&header, first.bytes().data(), sizeof header);
    const std::span<float> sum = model.chunk(sums.span(), header.chunk);
    if (header.type == 0) {
      CHECK_GE(zmq_msg_recv(payload.get(), socket.get(), 0), 0);
      AddChunk(payload.bytes(), sum);
      Send(socket.get(), &from, {1, header.chunk}, {});
    } else {
      Send(socket.get(), &from, {3, header.chunk}, sum);
    }
  }
}

class ZmqWorker : public PushPullWorker {
 public:
  ZmqWorker(const Model& model, const std::string& address)
      : model_(model),
        context_(zmq_ctx_new()),
        monitor_(zmq_socket(context_.get(), ZMQ_PAIR)),
        socket_(zmq_socket(context_.get(), ZMQ_DEALER)) {
    SetInt(socket_.get(), ZMQ_SNDHWM, 0);
    SetInt(socket_.get(), ZMQ_RCVHWM, 0);
    SetInt(socket_.get(), ZMQ_LINGER, 0);
    zmq_socket_monitor(socket_.get(), "inproc://monitor", ZMQ_EVENT_CONNECTED);
    CHECK_EQ(zmq_connect(monitor_.get(), "inproc://monitor"), 0);
    CHECK_EQ(zmq_connect(socket_.get(), address.c_str()), 0);
    ZmqFrame event;
    CHECK_GE(zmq_msg_recv(event.get(), monitor_.get(), 0), 0);
    uint32_t fd = 0;
    std::memcpy(&fd, event.bytes().data() + sizeof(uint16_t), sizeof fd);
    UseLoopbackCongestionControl(static_cast<int>(fd));
    zmq_socket_monitor(socket_.get(), nullptr, 0);
  }

  void PushPull(std::span<float> update, std::span<float> weights) override {
    for (size_t i = 0; i < model_.chunks(); ++i) {
      Send(socket_.get(), nullptr, {0, i}, model_.chunk(update, i));
    }
    for (size_t i = 0; i < model_.chunks(); ++i) Send(socket_.get(), nullptr, {2, i}, {});
    for (size_t replies = 0; replies < 2 * model_.chunks(); ++replies) {
      ZmqFrame first;
      CHECK_GE(zmq_msg_recv(first.get(), socket_.get(), 0), 0);
      if (!first.more()) continue;
      Header header;
      std::memcpy(&header, first.bytes().data(), sizeof header);
      ZmqFrame payload;
      CHECK_GE(zmq_msg_recv(payload.get(), socket_.get(), 0), 0);
      const std::span<float> out = model_.chunk(weights, header.chunk);
      std::memcpy(out.data(), payload.bytes().data(), out.size_bytes());
    }
  }

 private:
  const Model model_;
  ZmqContext context_;
  ZmqSocket monitor_;
  ZmqSocket socket_;
};

}  // namespace

Contender BareZmqContender() {
  return {"bare ZeroMQ", Serve,
          [](const Model& model, const std::string& address) -> std::unique_ptr<PushPullWorker> {
            return std::make_unique<ZmqWorker>(model, address);
          }};
}

}  // namespace kumo::bench
