// Contender: kumo::ZmqTransport with wire::Headers, as server and worker use it, without their
// state machines.
#include <memory>

#include <unistd.h>

#include <glog/logging.h>

#include "bench/push_pull.h"
#include "bench/push_pull_transport.h"
#include "common/base/buffer.h"

namespace kumo::bench {
namespace {

void Serve(const Model& model, int report_fd, Checksums checksums, const std::string& address,
           const SharedKeys& keys = nullptr) {
  const auto transport = MakeTransport(kServer, checksums, keys);
  const Status bound = transport->Bind(address);
  CHECK(bound.ok()) << bound.message();
  Buffer<float> sums(model.floats);
  Report(report_fd, transport->bound_address());
  ZmqTransport::MessageHandler handler = [&](const PeerName& from, Message message) {
    const auto chunk = static_cast<size_t>(message.header.chunk());
    if (chunk >= model.chunks()) return;
    const std::span<float> sum = model.chunk(sums.span(), chunk);
    if (message.header.type() == wire::PUSH) {
      if (message.payload.bytes.size() != sum.size_bytes()) return;
      AddChunk(message.payload.bytes, sum);
      SendPatiently(*transport, from, MakeMessage(wire::ACK, chunk), handler);
    } else if (message.header.type() == wire::PULL) {
      Message reply = MakeMessage(wire::CHUNK, chunk);
      reply.payload = Borrow(sum);
      SendPatiently(*transport, from, reply, handler);
    }
  };
  while (true) transport->Poll(-1, handler);
}

class KumoWorker : public PushPullWorker {
 public:
  KumoWorker(const Model& model, const std::string& address, Checksums checksums,
             const SharedKeys& keys = nullptr)
      : model_(model), worker_(model, MakeTransport("worker/bench/1", checksums, keys)) {
    worker_.Connect(address);
  }

  void PushPull(std::span<float> update, std::span<float> weights) override {
    worker_.ReceiveInto(weights);
    for (size_t i = 0; i < model_.chunks(); ++i) {
      Message push = MakeMessage(wire::PUSH, i);
      push.payload = Borrow(model_.chunk(update, i));
      worker_.Send(push);
    }
    for (size_t i = 0; i < model_.chunks(); ++i) worker_.Send(MakeMessage(wire::PULL, i));
    worker_.AwaitReplies(model_.chunks(), model_.chunks());
  }

 private:
  const Model model_;
  TransportWorker worker_;
};

template <Checksums kChecksums>
std::unique_ptr<PushPullWorker> Connect(const Model& model, const std::string& address) {
  return std::make_unique<KumoWorker>(model, address, kChecksums);
}

struct KeysOfBoth {
  SharedKeys server, worker;
};

// Created before the server's process is forked.
const KeysOfBoth& Keys() {
  static const KeysOfBoth both = [] {
    ConnectionKeys server{ServerKey(0), MakeKeyPair().value(), {}, ""};
    ConnectionKeys worker{kSharedWorkerKey, MakeKeyPair().value(), {}, ""};
    CHECK(server.allowed.Add(server.holder, server.own.public_key).ok());
    CHECK(server.allowed.Add(worker.holder, worker.own.public_key).ok());
    worker.allowed = server.allowed;
    return KeysOfBoth{std::make_shared<const ConnectionKeys>(server),
                      std::make_shared<const ConnectionKeys>(worker)};
  }();
  return both;
}

}  // namespace

Contender KumoKeysContender() {
  (void)Keys();
  return {"kumo, keys",
          [](const Model& model, int fd) {
            Serve(model, fd, Checksums::kNetwork, "tcp://127.0.0.1:*", Keys().server);
          },
          [](const Model& model, const std::string& address) -> std::unique_ptr<PushPullWorker> {
            return std::make_unique<KumoWorker>(model, address, Checksums::kNetwork, Keys().worker);
          }};
}

Contender KumoContender() {
  return {"kumo",
          [](const Model& model, int fd) {
            Serve(model, fd, Checksums::kNetwork, "tcp://127.0.0.1:*");
          },
          Connect<Checksums::kNetwork>};
}

Contender KumoIpcContender() {
  return {"kumo, ipc",
          [](const Model& model, int fd) {
            Serve(model, fd, Checksums::kNetwork,
                  "ipc://@kumo-push-pull-" + std::to_string(getpid()));
          },
          Connect<Checksums::kNetwork>};
}

Contender KumoChecksumContender() {
  return {
      "kumo, CRC32C",
      [](const Model& model, int fd) { Serve(model, fd, Checksums::kAlways, "tcp://127.0.0.1:*"); },
      Connect<Checksums::kAlways>};
}

}  // namespace kumo::bench
