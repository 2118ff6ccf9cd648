// Common parts of push_pull's contenders over kumo::ZmqTransport.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "bench/push_pull.h"
#include "common/transport/zmq_transport.h"

namespace kumo::bench {

constexpr char kServer[] = "server/0";

// keys: null for none.
std::unique_ptr<ZmqTransport> MakeTransport(const std::string& name, Checksums checksums,
                                            const SharedKeys& keys = nullptr);

// Sends, waiting until the peer is connected; the benchmark fits into every queue.
void SendPatiently(ZmqTransport& transport, const PeerName& to, const Message& message,
                   const ZmqTransport::MessageHandler& handler);

Message MakeMessage(wire::Type type, size_t chunk);

// The payload borrows: the arenas live as long as the process.
Payload Borrow(std::span<float> numbers);

// Worker end: sends to the server, counts acknowledgements and copies chunks out.
class TransportWorker {
 public:
  TransportWorker(const Model& model, std::unique_ptr<ZmqTransport> transport);
  void Connect(const std::string& address);
  // Destination of the chunks that arrive from now on.
  void ReceiveInto(std::span<float> weights) { weights_ = weights; }
  void Send(const Message& message) { SendPatiently(*transport_, kServer, message, handler_); }
  // Returns when this many have arrived since the last call returned.
  void AwaitReplies(size_t acknowledgements, size_t chunks);

 private:
  void OnMessage(const Message& message);

  const Model model_;
  const std::unique_ptr<ZmqTransport> transport_;
  const ZmqTransport::MessageHandler handler_;
  std::span<float> weights_;
  size_t acknowledged_ = 0;
  size_t pulled_ = 0;
};

}  // namespace kumo::bench
