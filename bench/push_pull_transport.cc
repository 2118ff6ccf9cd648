#include "bench/push_pull_transport.h"

#include <cstdint>
#include <cstring>

#include <glog/logging.h>

namespace kumo::bench {

std::unique_ptr<ZmqTransport> MakeTransport(const std::string& name, Checksums checksums,
                                            const SharedKeys& keys) {
  ZmqTransportOptions options;
  options.name = name;
  options.framing.job = 1;
  options.framing.max_payload_bytes = kChunkFloats * sizeof(float);
  options.checksums = checksums;
  options.keys = keys;
  auto transport = ZmqTransport::Make(options);
  CHECK(transport.ok()) << transport.status().message();
  return std::move(transport).value();
}

void SendPatiently(ZmqTransport& transport, const PeerName& to, const Message& message,
                   const ZmqTransport::MessageHandler& handler) {
  Status status = transport.Send(to, message);
  while (status.code() == StatusCode::kUnavailable) {
    transport.Poll(kMillisecond, handler);
    status = transport.Send(to, message);
  }
  CHECK(status.ok()) << status.message();
}

Message MakeMessage(wire::Type type, size_t chunk) {
  Message message;
  message.header.set_type(type);
  message.header.set_chunk(static_cast<int32_t>(chunk));
  return message;
}

Payload Borrow(std::span<float> numbers) { return {nullptr, std::as_bytes(numbers)}; }

TransportWorker::TransportWorker(const Model& model, std::unique_ptr<ZmqTransport> transport)
    : model_(model),
      transport_(std::move(transport)),
      handler_([this](const PeerName&, Message message) { OnMessage(message); }) {}

void TransportWorker::Connect(const std::string& address) {
  const Status status = transport_->Connect(kServer, address);
  CHECK(status.ok()) << status.message();
}

void TransportWorker::AwaitReplies(size_t acknowledgements, size_t chunks) {
  while (acknowledged_ < acknowledgements || pulled_ < chunks) transport_->Poll(-1, handler_);
  acknowledged_ = pulled_ = 0;
}

void TransportWorker::OnMessage(const Message& message) {
  if (message.header.type() == wire::ACK) ++acknowledged_;
  const auto chunk = static_cast<size_t>(message.header.chunk());
  if (message.header.type() != wire::CHUNK || chunk >= model_.chunks()) return;
  const std::span<float> out = model_.chunk(weights_, chunk);
  if (message.payload.bytes.size() != out.size_bytes()) return;
  std::memcpy(out.data(), message.payload.bytes.data(), out.size_bytes());
  ++pulled_;
}

}  // namespace kumo::bench
