// Answers libzmq's question whether a key may connect (ZAP, ZeroMQ RFC 27): it may where the allow
// list has it. What that list says of its holder then comes with every message of the connection,
// as its User-Id.
//
// libzmq asks before the connection has a queue or a name here. A key that is not known has the
// list read again, at most once in kLookAgain: so a job need not be started anew for workers whose
// keys were added to it.
//
// Owned by the transport, whose loop thread alone uses it. Time is handed in.
#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/keys.h"
#include "common/transport/refusal_log.h"
#include "common/transport/zmq_handles.h"

namespace kumo {

class ZapHandler {
 public:
  static constexpr TimeUs kLookAgain = kSecond;

  // To be made before any socket of the context is bound. Internal where libzmq has no CURVE, or no
  // socket left.
  static Result<std::unique_ptr<ZapHandler>> Make(void* context, const ConnectionKeys& keys);

  // Answers what has been asked, a bounded number of questions, and logs refusals.
  void Serve(TimeUs now, RefusalLog* log);

  void* socket() { return socket_.get(); }  // to wait for

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
