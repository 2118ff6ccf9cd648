// CURVE encryption and authentication of connections (ZeroMQ RFC 26): the socket options of libzmq,
// the check of keys against the allow list, and the explanation of failed handshakes.
//
// The functions are stateless and set options of a socket that is neither bound nor connected yet.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/keys.h"
#include "common/transport/message.h"
#include "common/transport/refusal_log.h"
#include "common/transport/zmq_handles.h"

namespace kumo {

// Bytes that CURVE adds to each frame: command name, nonce, authentication and flags.
constexpr size_t kCurveFrameOverhead = 8 + 8 + 16 + 1;

// Options of a listening socket: peers must know its key and have a key that a ZapHandler allows.
// Without a ZapHandler in the context libzmq accepts any key, and messages then carry no names.
void UseKeysToListen(void* socket, const ConnectionKeys& keys);

// Options of a socket that connects to `server`: only the holder of the server's key in the allow
// list can answer. FailedPrecondition if the list has no key of the server.
Status UseKeysToConnect(void* socket, const ConnectionKeys& keys, const PeerName& server);

// The monitor events of failed handshakes.
int HandshakeFailures();
// True if libzmq does not retry after such an event.
bool EndsForGood(int event);
// The reason, for people, as far as this end knows it: "... refuses the key of worker 3 ...". keys:
// null if this process has none.
std::string WhyHandshakeFailed(int event, int value, const ConnectionKeys* keys);

// ZAP handler (ZeroMQ RFC 27): answers libzmq's question whether a key may connect: yes, if the
// allow list contains it. The names that the list allows its holder then come with every message of
// the connection, as its User-Id.
//
// libzmq asks before the connection has a queue or a name. For an unknown key the list is read
// again, at most once per kLookAgain, so that a running job accepts keys that were added later.
//
// Owned by the transport, used by its loop thread only. Time is passed in.
class ZapHandler {
 public:
  static constexpr TimeUs kLookAgain = kSecond;

  // Make it before any socket of the context is bound. Internal if libzmq has no CURVE or no free
  // socket.
  static Result<std::unique_ptr<ZapHandler>> Make(void* context, const ConnectionKeys& keys);

  // Answers a bounded number of questions, and logs refusals.
  void Serve(TimeUs now, RefusalLog* log);

  void* socket() { return socket_.get(); }  // to poll

 private:
  ZapHandler(ZmqSocket socket, const ConnectionKeys& keys);

  struct Question;
  bool Receive(Question* question);
  void Answer(const Question& question, const std::string& names);
  const KeyHolder* Find(const std::string& key, TimeUs now);

  const ZmqSocket socket_;
  const std::string folder_;
  AllowList allowed_;
  TimeUs look_again_ = 0;
};

}  // namespace kumo
