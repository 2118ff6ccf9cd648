#include "cli/server_connection.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/transport/key_files.h"

namespace kumo {
namespace {

// The question again, in case the first was lost with a connection.
constexpr TimeUs kAskAgain = kSecond;

}  // namespace

Result<std::unique_ptr<ServerConnection>> ServerConnection::Open(const JobAddress& to,
                                                                 uint64_t job) {
  KUMO_RETURN_IF_ERROR(ParseAddress(to.address).status());
  ZmqTransportOptions options;
  options.name = "client/" + std::to_string(std::random_device()());
  options.framing.job = job;
  options.linger_ms = 0;
  KUMO_ASSIGN_OR_RETURN(options.keys, ReadKeys(to.keys, kClientKey));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport,
                        ZmqTransport::Make(std::move(options)));
  KUMO_RETURN_IF_ERROR(transport->Connect(ServerPeer(0), to.address));
  return std::unique_ptr<ServerConnection>(new ServerConnection(to, std::move(transport)));
}

Result<Message> ServerConnection::Ask(wire::Type question, wire::Type answer, int timeout_ms) {
  const SteadyClock clock;
  const TimeUs limit = clock.NowUs() + timeout_ms * kMillisecond;
  TimeUs ask_at = clock.NowUs();
  bool connected = false;
  transport_->OnConnected([&](const PeerName&) {
    connected = true;
    ask_at = clock.NowUs();
  });
  std::optional<Message> answered;
  for (TimeUs now = clock.NowUs(); !answered && now < limit; now = clock.NowUs()) {
    if (now >= ask_at) {
      Message asked;
      asked.header.set_type(question);
      Say(std::move(asked));  // while the connection is being made OnConnected says when to ask
      ask_at = now + kAskAgain;
    }
    Listen(std::min(ask_at, limit) - now, [&](Message message) {
      if (message.header.type() == answer) answered = std::move(message);
    });
  }
  transport_->OnConnected(nullptr);
  if (answered) return *std::move(answered);
  const std::string waited = " within " + std::to_string(timeout_ms) + " ms";
  if (!connected && to_.keys.empty()) {
    return Unavailable("nothing answers at " + to_.address + waited +
                       "; is the job running, and is this its server 0? One with keys answers "
                       "to --keys DIR alone");
  }
  if (!connected) {
    return Unavailable("nothing that has the key of server 0 in " + to_.keys + " answers at " +
                       to_.address + waited + "; is the job running, and with these keys?");
  }
  return Unavailable(to_.address + " takes connections but has not answered" + waited +
                     "; is it server 0 of a kumo job?");
}

void ServerConnection::Listen(TimeUs timeout_us, const std::function<void(Message)>& on_message) {
  transport_->Poll(timeout_us,
                   [&](const PeerName&, Message message) { on_message(std::move(message)); });
}

}  // namespace kumo
