// One ZeroMQ socket of a transport: the one that listens (a ROUTER), or one that is connected to a
// peer (a DEALER), with the monitor that tells when its connections are made and lost.
//
// One thread. The context outlives it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/backlog_guard.h"
#include "common/transport/message.h"
#include "common/transport/pending_connections.h"
#include "common/transport/transport_options.h"
#include "common/transport/zmq_handles.h"

namespace kumo {

class ZmqLink {
 public:
  // Listens. Errors: those of ListenTcp and CheckIpcFree; Internal where ZeroMQ has no socket left.
  static Result<std::unique_ptr<ZmqLink>> Listen(void* context, const ZmqTransportOptions& options,
                                                 const Address& address);
  // Starts to connect, and to connect again. routing_id: what every connection opens with.
  // InvalidArgument for an address that cannot be connected to; FailedPrecondition where there are
  // keys, but none of the peer's.
  static Result<std::unique_ptr<ZmqLink>> Connect(void* context, const ZmqTransportOptions& options,
                                                  const std::string& routing_id,
                                                  const PeerName& peer, const Address& address);
  ~ZmqLink();
  ZmqLink(const ZmqLink&) = delete;
  ZmqLink& operator=(const ZmqLink&) = delete;

  bool listens() const { return peer_.empty(); }
  const PeerName& peer() const { return peer_; }  // "" of one that listens
  // Where it listens, with the port that "any free one" became.
  const Address& address() const { return address_; }
  bool checksum() const { return checksum_; }     // of what leaves here
  BacklogGuard* guard() { return guard_.get(); }  // of what listens on tcp; else null
  // Whether who connects here has shown a key.
  bool wants_keys() const { return strangers_ != nullptr; }
  // Connections that were closed before they had said a word, of what wants keys.
  uint64_t strangers_left() const { return wants_keys() ? strangers_->left() : 0; }

  // Sends one message, all of it or nothing. routing_id: the connection, of one that listens.
  // payload: null where there is none. 0, or errno: EHOSTUNREACH where the connection is gone.
  int Send(const std::string* routing_id, ZmqFrame* header, ZmqFrame* payload);

  struct Arrived {
    static constexpr size_t kFrames = 2;  // header, payload

    std::string routing_id;  // of the connection that it came by, of one that listens
    std::string names;  // that the connection's key allows (KeyHolder::Names), where it has one
    std::array<Payload, kFrames + 1> frames;  // one more, to know of one too many
    size_t count = 0;
    size_t bytes = 0;  // of all of them
    std::span<const Payload> all() const { return {frames.data(), count}; }
  };
  // False when no message is there.
  bool Receive(Arrived* arrived);

  // Sees to what has happened to connections; on_connected: the peer can be sent to (again).
  void HandleEvents(const std::function<void(const PeerName& peer)>& on_connected);

  // To wait for: the socket, and what HandleEvents looks at (null where nothing is watched).
  void* socket() { return socket_.get(); }
  void* monitor() { return monitor_.get(); }

 private:
  ZmqLink(ZmqSocket socket, PeerName peer, Address address);

  Status Watch(void* context, int events);
  void HandleEvent(int event, int value,
                   const std::function<void(const PeerName& peer)>& on_connected);
  // What a frame's connection has shown and said.
  void Know(ZmqFrame* frame, Arrived* arrived);
  // Where libzmq has given up, after a handshake that went wrong: another process may be at the
  // address later.
  void ConnectAgain();

  ZmqSocket socket_;
  ZmqSocket monitor_;
  const PeerName peer_;
  Address address_;
  bool checksum_ = false;
  SharedKeys keys_;  // of one that connects; null: none
  std::unique_ptr<BacklogGuard> guard_;
  std::unique_ptr<PendingConnections> strangers_;
  SteadyClock clock_;
  TimeUs again_us_ = 0;                  // the pause before it
  std::optional<TimeUs> connect_again_;  // when
};

}  // namespace kumo
