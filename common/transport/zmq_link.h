// ZeroMQ link: one socket of a transport, either the listening one (a ROUTER) or one connected to a
// peer (a DEALER), with the monitor that reports made and lost connections.
//
// One thread. The context must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/connection_guards.h"
#include "common/transport/message.h"
#include "common/transport/speakers.h"
#include "common/transport/transport_options.h"
#include "common/transport/zmq_handles.h"

namespace kumo {

class ZmqLink {
 public:
  // Listens. The errors of ListenTcp and CheckIpcFree; Internal if ZeroMQ has no free socket.
  static Result<std::unique_ptr<ZmqLink>> Listen(void* context, const ZmqTransportOptions& options,
                                                 const Address& address);
  // Connects in the background, and reconnects. routing_id: opens every connection. InvalidArgument
  // if the address cannot be connected to; FailedPrecondition if there are keys, but none of the
  // peer.
  static Result<std::unique_ptr<ZmqLink>> Connect(void* context, const ZmqTransportOptions& options,
                                                  const std::string& routing_id,
                                                  const PeerName& peer, const Address& address);
  ~ZmqLink();
  ZmqLink(const ZmqLink&) = delete;
  ZmqLink& operator=(const ZmqLink&) = delete;

  bool listens() const { return peer_.empty(); }
  const PeerName& peer() const { return peer_; }  // "" if it listens
  // The listening address with the actual port.
  const Address& address() const { return address_; }
  bool checksum() const { return checksum_; }     // for sent payloads
  BacklogGuard* guard() { return guard_.get(); }  // if it listens on tcp; otherwise null
  // True if peers must show a key.
  bool wants_keys() const { return pending_ != nullptr; }
  // Number of connections that ended without a message, if keys are required.
  uint64_t refused_connections() const { return wants_keys() ? pending_->left() : 0; }

  // Sends a message completely or not at all. routing_id: the connection, if it listens. payload:
  // null if there is none. Returns 0 or errno: EHOSTUNREACH if the connection is gone.
  int Send(const std::string* routing_id, ZmqFrame* header, ZmqFrame* payload);

  struct Arrived {
    static constexpr size_t kFrames = 2;  // header, payload

    std::string routing_id;  // of the connection, if it listens
    std::string names;       // that the connection's key allows (KeyHolder::Names); "" without key
    std::array<Payload, kFrames + 1> frames;  // one more, to detect too many
    size_t count = 0;
    size_t bytes = 0;   // of all frames
    bool late = false;  // the connection has ended, if it listens
    std::span<const Payload> all() const { return {frames.data(), count}; }
  };
  // Returns false if there is no message.
  bool Receive(Arrived* arrived);
  // Routing ids whose connection has ended since the last call, if it listens.
  std::vector<std::string> TakeGone() { return speakers_.TakeGone(); }

  // Handles the monitor's events. on_connected: the peer can be sent to (again).
  void HandleEvents(const std::function<void(const PeerName& peer)>& on_connected);

  // To poll: the socket, and the monitor for HandleEvents (null if there is none).
  void* socket() { return socket_.get(); }
  void* monitor() { return monitor_.get(); }

 private:
  ZmqLink(ZmqSocket socket, PeerName peer, Address address);

  // Receives the rest of a message with too many frames. Returns false if it is incomplete.
  bool Drain(Arrived* arrived);

  Status Watch(void* context, int events);
  void HandleEvent(int event, int value,
                   const std::function<void(const PeerName& peer)>& on_connected);
  // Notes the process, the key and the bytes of a frame's connection.
  void Know(ZmqFrame* frame, Arrived* arrived);
  // Connects anew at the time of connect_again_.
  void ConnectAgain();
  // A connection attempt has failed.
  void OnRetry();

  ZmqSocket socket_;
  ZmqSocket monitor_;
  const PeerName peer_;
  Address address_;
  bool checksum_ = false;
  SharedKeys keys_;  // if it connects; null: none
  std::unique_ptr<BacklogGuard> guard_;
  std::unique_ptr<PendingConnections> pending_;
  Speakers speakers_;  // if it listens
  SteadyClock clock_;
  // If it connects: ConnectAgain, for what libzmq does not retry. A handshake that failed: another
  // process may be at the address later. A name without an address of the family that was tried:
  // the other family is next.
  std::optional<TimeUs> connect_again_;  // time
  TimeUs shortest_pause_ = 0, longest_pause_ = 0;
  TimeUs pause_ = 0;       // before the next change of the family
  bool has_name_ = false;  // the host is no number
  bool ipv6_ = false;      // addresses that are tried now; IPv6 includes mapped IPv4
};

}  // namespace kumo
