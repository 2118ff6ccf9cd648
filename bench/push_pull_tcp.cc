// Contender: a raw TCP connection with blocking sockets, one thread at each end, and a 16-byte
// header before each chunk. The server receives into one buffer that stays in its cache and adds
// from there. The worker receives directly to the numbers' place, without copying; the staged
// variant receives into a buffer and copies out, like the messaging contenders.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include <glog/logging.h>

#include "bench/push_pull.h"
#include "common/base/address.h"
#include "common/base/buffer.h"

namespace kumo::bench {
namespace {

struct Header {
  uint64_t type = 0;  // 0 push, 1 acknowledgement, 2 pull, 3 chunk
  uint64_t chunk = 0;
};

void SendAll(int fd, Header header, std::span<float> payload) {
  iovec parts[2] = {{&header, sizeof header}, {payload.data(), payload.size_bytes()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  while (message.msg_iovlen > 0) {
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    PCHECK(sent > 0) << "sendmsg";
    auto left = static_cast<size_t>(sent);
    while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
      left -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + left;
      message.msg_iov->iov_len -= left;
    }
  }
}

// Returns false if the other end has closed the connection.
bool ReceiveAll(int fd, void* data, size_t bytes) {
  const ssize_t received = recv(fd, data, bytes, MSG_WAITALL);
  return received == static_cast<ssize_t>(bytes);
}

void ServeConnection(const Model& model, int fd) {
  Buffer<float> sums(model.floats);
  Buffer<float> chunk(kChunkFloats);
  Header header;
  while (ReceiveAll(fd, &header, sizeof header)) {
    const std::span<float> sum = model.chunk(sums.span(), header.chunk);
    if (header.type == 0) {
      if (!ReceiveAll(fd, chunk.data(), sum.size_bytes())) return;
      AddChunk(std::as_bytes(chunk.span()).first(sum.size_bytes()), sum);
      SendAll(fd, {1, header.chunk}, {});
    } else {
      SendAll(fd, {3, header.chunk}, sum);
    }
  }
}

void Serve(const Model& model, int report_fd) {
  const Result<Listener> listener = ListenTcp(*ParseAddress("tcp://127.0.0.1:*"), false);
  CHECK(listener.ok()) << listener.status().message();
  Report(report_fd, listener->address.ToString());
  while (true) {
    const int fd = accept(listener->fd, nullptr, nullptr);
    if (fd < 0) {
      usleep(1000);  // the listener does not block
      continue;
    }
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ServeConnection(model, fd);
    close(fd);
  }
}

class TcpWorker : public PushPullWorker {
 public:
  TcpWorker(const Model& model, const std::string& text, bool staged)
      : model_(model), staging_(staged ? kChunkFloats : 0), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const Result<Address> address = ParseAddress(text);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(address->port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int yes = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    UseLoopbackCongestionControl(fd_);
    PCHECK(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  }
  ~TcpWorker() override { close(fd_); }

  void PushPull(std::span<float> update, std::span<float> weights) override {
    for (size_t i = 0; i < model_.chunks(); ++i) SendAll(fd_, {0, i}, model_.chunk(update, i));
    for (size_t i = 0; i < model_.chunks(); ++i) SendAll(fd_, {2, i}, {});
    for (size_t replies = 0; replies < 2 * model_.chunks(); ++replies) {
      Header header;
      CHECK(ReceiveAll(fd_, &header, sizeof header));
      if (header.type != 3) continue;
      const std::span<float> out = model_.chunk(weights, header.chunk);
      if (staging_.empty()) {
        CHECK(ReceiveAll(fd_, out.data(), out.size_bytes()));
      } else {
        CHECK(ReceiveAll(fd_, staging_.data(), out.size_bytes()));
        std::memcpy(out.data(), staging_.data(), out.size_bytes());
      }
    }
  }

 private:
  const Model model_;
  Buffer<float> staging_;
  const int fd_;
};

template <bool kStaged>
std::unique_ptr<PushPullWorker> Connect(const Model& model, const std::string& address) {
  return std::make_unique<TcpWorker>(model, address, kStaged);
}

}  // namespace

Contender RawTcpContender() { return {"raw TCP", Serve, Connect<false>}; }
Contender RawTcpStagedContender() { return {"raw TCP, copying out", Serve, Connect<true>}; }

}  // namespace kumo::bench
