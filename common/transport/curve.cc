#include "common/transport/curve.h"

#include <zmq.h>

#include <array>
#include <string_view>
#include <utility>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/transport/key_files.h"

namespace kumo {

namespace {

void Set(void* socket, int option, const std::string& value) {
  // The value is not shown: it may be a secret.
  CHECK_EQ(zmq_setsockopt(socket, option, value.data(), value.size()), 0)
      << "ZeroMQ option " << option << ": " << zmq_strerror(zmq_errno());
}

// The public key that the peer must have.
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
                              server + "; add it with `kumo keys --servers`");
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
    return "refuses the key of " + own + " from " + folder + ", which is not in its allow list";
  }
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
      value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
    return keys != nullptr
               ? "has no keys, but this process has (cluster.keys = " + folder + ")"
               : "requires keys, but this process has none; set cluster.keys (kumo status "
                 "--keys) to the folder that `kumo keys` made";
  }
  if (keys == nullptr) {
    return "ended the connection during the handshake; if this persists, it requires keys, but "
           "this process has none (cluster.keys)";
  }
  return "ended the connection during the handshake; if this persists, its key differs from the "
         "one in the allow list of " +
         folder;
}

namespace {

constexpr char kEndpoint[] = "inproc://zeromq.zap.01";
constexpr std::string_view kVersion = "1.0";
// Bounds the questions per call, so that a flood does not hold up the loop.
constexpr int kMostAtOnce = 64;

// The frames of a question before the credentials.
enum Frame { kItsVersion, kRequest, kDomain, kAddress, kRoutingId, kMechanism, kKey, kFrames };

}  // namespace

struct ZapHandler::Question {
  std::array<std::string, kFrames> frames;
  size_t count = 0;
};

Result<std::unique_ptr<ZapHandler>> ZapHandler::Make(void* context, const ConnectionKeys& keys) {
  KUMO_RETURN_IF_ERROR(CheckCurve());
  ZmqSocket socket(zmq_socket(context, ZMQ_REP));
  const int linger = 0;
  if (socket == nullptr || zmq_setsockopt(socket.get(), ZMQ_LINGER, &linger, sizeof linger) != 0 ||
      zmq_bind(socket.get(), kEndpoint) != 0) {
    return Internal(std::string("cannot check keys: ") + zmq_strerror(zmq_errno()));
  }
  return std::unique_ptr<ZapHandler>(new ZapHandler(std::move(socket), keys));
}

ZapHandler::ZapHandler(ZmqSocket socket, const ConnectionKeys& keys)
    : socket_(std::move(socket)), folder_(keys.folder), allowed_(keys.allowed) {}

void ZapHandler::Serve(TimeUs now, RefusalLog* log) {
  Question question;
  for (int i = 0; i < kMostAtOnce && Receive(&question); ++i) {
    const std::string& mechanism = question.frames[kMechanism];
    // A connection without keys is asked about only on a socket file, whose permissions decide; on
    // a socket that requires keys it does not get here.
    if (mechanism == "NULL") {
      Answer(question, "nobody");
      continue;
    }
    const bool curve = mechanism == "CURVE" && question.count == kFrames;
    const KeyHolder* holder = curve ? Find(question.frames[kKey], now) : nullptr;
    Answer(question, holder != nullptr ? holder->Names() : "");
    if (holder != nullptr) continue;
    const std::string told = log->Note(Refused::kConnection,
                                       "connection from " + Printable(question.frames[kAddress]) +
                                           " refused: its key is not in the allow list",
                                       now);
    LOG_IF(WARNING, !told.empty()) << told;
  }
}

bool ZapHandler::Receive(Question* question) {
  question->count = 0;
  for (bool more = true; more;) {
    ZmqFrame frame;
    if (zmq_msg_recv(frame.get(), socket_.get(), ZMQ_DONTWAIT) < 0) return false;
    more = frame.more();
    if (question->count < kFrames) {
      question->frames[question->count].assign(reinterpret_cast<const char*>(frame.bytes().data()),
                                               frame.bytes().size());
    }
    ++question->count;
  }
  return true;
}

// names: empty to refuse.
void ZapHandler::Answer(const Question& question, const std::string& names) {
  const bool allowed = !names.empty();
  const std::array<std::string_view, 6> frames = {
      kVersion,
      question.frames[kRequest],
      allowed ? "200" : "400",
      allowed ? "" : "this key is not in the allow list",
      names,
      ""};
  for (size_t i = 0; i < frames.size(); ++i) {
    const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
    if (zmq_send(socket_.get(), frames[i].data(), frames[i].size(), flags | ZMQ_DONTWAIT) < 0) {
      LOG(ERROR) << "cannot answer whether a key may connect: " << zmq_strerror(zmq_errno());
      return;
    }
  }
}

const KeyHolder* ZapHandler::Find(const std::string& key, TimeUs now) {
  const KeyHolder* holder = allowed_.HolderOf(key);
  if (holder != nullptr || now < look_again_) return holder;
  look_again_ = now + kLookAgain;
  Result<AllowList> list = ReadAllowList(folder_);
  if (!list.ok()) {
    LOG(WARNING) << "the allow list was not updated: " << list.status().message();
    return nullptr;
  }
  allowed_ = std::move(list).value();
  return allowed_.HolderOf(key);
}

}  // namespace kumo
