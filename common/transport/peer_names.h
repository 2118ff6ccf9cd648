// Peer names: which process has which name at a listening socket. One process at a time has a name,
// because answers are sent to names and a message counts as its name's.
//
// Routing ids. A connection opens with a routing id: the process's name, '#', and a token that the
// process draws when it starts. So a process that reconnects differs from another process with its
// name, and ZeroMQ never has to choose between two.
//
// Algorithm. The first process that speaks under a name holds it. Another process that speaks under
// the name is not heard until the state of the holder is known. The holder is asked (PING with an
// unpredictable number). If it answers, the other process is refused. If its connection is gone, or
// it does not answer for `silent_us`, the other process becomes the holder. A former holder that
// comes back is then the other process: earlier possession gives no preference. A holder that
// answers is asked again as often as others want its name, but at most every kAskAgain.
//
// Owned by the transport, used by its loop thread only. Time is passed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

constexpr size_t kTokenDigits = 16;
// The longest name: the rest of a routing id (255 bytes) beside the token.
constexpr size_t kLongestPeerName = 255 - 1 - kTokenDigits;
// Length to which a name, which may be anyone's, is shortened in messages.
constexpr size_t kShownOfAName = 67;

// "server/1#00c0ffee00c0ffee"
std::string RoutingId(const PeerName& name, uint64_t token);
// The name in a routing id; none if it is malformed (visible ASCII characters, '#', 16 hexadecimal
// digits).
std::optional<PeerName> NameIn(std::string_view routing_id);

class PeerNames {
 public:
  static constexpr TimeUs kAskAgain = 10 * kMillisecond;
  // More than the processes of a job. Beyond it, the name that was silent longest is forgotten
  // until its process speaks.
  static constexpr size_t kMostNames = 8192;

  // one_worker_per_name: "worker/NAME/1" and "worker/NAME/2" count as one name.
  PeerNames(TimeUs silent_us, bool one_worker_per_name)
      : silent_us_(silent_us), one_worker_per_name_(one_worker_per_name) {}

  // A process spoke under `name`. Returns true if it holds the name, false if another process holds
  // it or has held it until now.
  bool Hear(const std::string& routing_id, const PeerName& name, TimeUs now);
  // After Hear returned false: the holder to ask, and the number that its answer must repeat. None
  // if it is not time to ask.
  struct Question {
    std::string to;  // a routing id
    uint64_t number = 0;
  };
  std::optional<Question> Ask(const std::string& routing_id, const PeerName& name, TimeUs now);
  // The holder is gone: the other process becomes the holder.
  void Replace(const std::string& routing_id, const PeerName& name, TimeUs now);
  // The holder `routing_id` has answered a question. Returns the routing id of the process to
  // refuse; none if the number matches no question.
  std::optional<std::string> Answer(const std::string& routing_id, const PeerName& name,
                                    uint64_t number);

  // The routing id for messages to `name`; null if no process holds it.
  const std::string* Find(const PeerName& name) const;

 private:
  struct Place {
    std::string holder;  // routing ids
    PeerName name;       // the holder's
    TimeUs heard = 0;
    std::string other;  // the process that wants the name; empty: none, or the holder has answered
    TimeUs wanted_at = 0;
    TimeUs other_heard = 0;
    uint64_t question = 0;
    TimeUs ask_at = 0;
  };

  // The part of a name that only one process at a time may have.
  std::string_view Exclusive(const PeerName& name) const;
  void MakeRoom();

  const TimeUs silent_us_;
  const bool one_worker_per_name_;
  uint64_t questions_ = 0;
  std::unordered_map<std::string, Place> places_;
};

// Name disputes: the messages of PeerNames' algorithm. If another process speaks under a name, its
// holder is asked whether it is alive (PING, PONG), and the other process is refused if the holder
// answers (REFUSED).
//
// Owned by the transport, used by its loop thread only. Time is passed in.
class NameDisputes {
 public:
  // Sends a header to a connection, unless its queue is full; false if the connection is gone.
  using SendTo = std::function<bool(const std::string& routing_id, wire::Header header)>;

  NameDisputes(PeerNames names, SendTo send) : names_(std::move(names)), send_(std::move(send)) {}

  // The process behind a connection has spoken under a name. FailedPrecondition if another process
  // has the name.
  Status Hear(const std::string& routing_id, const PeerName& name, TimeUs now);
  // A PONG with this number has arrived.
  void OnPong(const std::string& routing_id, const PeerName& name, uint64_t number);

  // The routing id for messages to `name`; null if no process has that name.
  const std::string* Find(const PeerName& name) const { return names_.Find(name); }

 private:
  PeerNames names_;
  SendTo send_;
};

}  // namespace kumo
