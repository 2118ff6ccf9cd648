#include "common/transport/zap_handler.h"

#include <array>
#include <string_view>
#include <utility>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/transport/key_files.h"

namespace kumo {
namespace {

constexpr char kEndpoint[] = "inproc://zeromq.zap.01";
constexpr std::string_view kVersion = "1.0";
// A flood of questions must not keep the loop here.
constexpr int kMostAtOnce = 64;

// The frames of a question, behind which there are those of the credentials.
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
    // What has no keys is asked about where it is a socket file, whose permissions decide: a
    // socket that wants keys does not get this far without.
    if (mechanism == "NULL") {
      Answer(question, "nobody");
      continue;
    }
    const bool curve = mechanism == "CURVE" && question.count == kFrames;
    const KeyHolder* holder = curve ? Find(question.frames[kKey], now) : nullptr;
    Answer(question, holder != nullptr ? holder->Names() : "");
    if (holder != nullptr) continue;
    const std::string told = log->Note("connection from " + Printable(question.frames[kAddress]) +
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
      LOG(ERROR) << "answering whether a key may connect: " << zmq_strerror(zmq_errno());
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
    LOG(WARNING) << "the allow list is left as it was: " << list.status().message();
    return nullptr;
  }
  allowed_ = std::move(list).value();
  return allowed_.HolderOf(key);
}

}  // namespace kumo
