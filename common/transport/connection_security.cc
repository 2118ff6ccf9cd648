#include "common/transport/connection_security.h"

#include <optional>

#include <glog/logging.h>
#include <zmq.h>

namespace kumo {
namespace {

void Set(void* socket, int option, const std::string& value) {
  // No value is shown: it may be a secret.
  CHECK_EQ(zmq_setsockopt(socket, option, value.data(), value.size()), 0)
      << "ZeroMQ option " << option << ": " << zmq_strerror(zmq_errno());
}

// Whose public key the peer must have.
const std::string* KeyOfPeer(const ConnectionKeys& keys, const PeerName& peer) {
  for (const auto& [holder, key] : keys.allowed.entries()) {
    if (holder.role == KeyHolder::Role::kServer && holder.Names() == peer) return &key;
  }
  return nullptr;
}

}  // namespace

void UseKeysToListen(void* socket, const ConnectionKeys& keys) {
  const int yes = 1;
  CHECK_EQ(zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes), 0);
  Set(socket, ZMQ_CURVE_SECRETKEY, keys.own.secret_key);
}

Status UseKeysToConnect(void* socket, const ConnectionKeys& keys, const PeerName& server) {
  const std::string* server_key = KeyOfPeer(keys, server);
  if (server_key == nullptr) {
    return FailedPrecondition("cluster.keys = " + keys.folder + ": the allow list has no key of " +
                              server + "; kumo keys adds it (--servers)");
  }
  Set(socket, ZMQ_CURVE_SERVERKEY, *server_key);
  Set(socket, ZMQ_CURVE_PUBLICKEY, keys.own.public_key);
  Set(socket, ZMQ_CURVE_SECRETKEY, keys.own.secret_key);
  return OkStatus();
}

int HandshakeFailures() {
  return ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
         ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
}

bool EndsForGood(int event) {
  return event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH || event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;
}

std::string WhyHandshakeFailed(int event, int value, const ConnectionKeys* keys) {
  const std::string own = keys != nullptr ? keys->holder.ToString() : "";
  const std::string folder = keys != nullptr ? keys->folder : "";
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
    return "refuses the key of " + own + ": its allow list does not have the one of " + folder;
  }
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
      value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
    return keys != nullptr ? "has no keys, and this process has (cluster.keys = " + folder + ")"
                           : "wants keys, and this process has none; set cluster.keys (kumo status "
                             "--keys) to the folder that kumo keys made";
  }
  if (keys == nullptr) {
    return "ended the connection before it was made; where it goes on doing so, it wants keys, and "
           "this process has none (cluster.keys)";
  }
  return "ended the connection before it was made; where it goes on doing so, its key is not the "
         "one that the allow list of " +
         folder + " has for it";
}

}  // namespace kumo
