// Who has which name at a listening socket. One process at a time: names are where answers go, and
// what a name says counts as what that process says.
//
// A connection opens with a routing id: the process's name, '#', and a token that the process draws
// when it starts. So the same process that comes back on another connection is told from another
// process under its name, and ZeroMQ never has to choose between two.
//
// Who speaks first under a name has it. Another process that speaks under it is not listened to
// until it is clear what has become of the first. That one is asked (PING, with a number that
// nobody else knows): where it answers, the other is refused, and where its connection is gone, or
// it does not answer for `silent_us`, the other has the name from then on. The first, should it
// come back, is then the one that is not listened to. Nobody is preferred for having had a name
// before.
//
// A process that answers is asked for as often as others want its name, but not more often than
// every kAskAgain.
//
// Owned by the transport, whose loop thread alone uses it. Time is handed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/transport/message.h"

namespace kumo {

constexpr size_t kTokenDigits = 16;
// The longest name: what a routing id (255 bytes) has room for beside the token.
constexpr size_t kLongestPeerName = 255 - 1 - kTokenDigits;
// So much of a name, which may be anybody's, is shown to people.
constexpr size_t kShownOfAName = 67;

// "server/1#00c0ffee00c0ffee"
std::string RoutingId(const PeerName& name, uint64_t token);
// The name in a routing id; none where it is not of that form: visible ASCII characters, '#', 16
// hexadecimal digits.
std::optional<PeerName> NameIn(std::string_view routing_id);

class PeerNames {
 public:
  static constexpr TimeUs kAskAgain = 10 * kMillisecond;
  // More names than a job has processes; beyond it, who was not heard for the longest time is
  // forgotten until it speaks.
  static constexpr size_t kMostNames = 8192;

  // one_worker_per_name: "worker/NAME/1" and "worker/NAME/2" are the same name, too.
  PeerNames(TimeUs silent_us, bool one_worker_per_name)
      : silent_us_(silent_us), one_worker_per_name_(one_worker_per_name) {}

  // A process spoke that calls itself `name`. True: it has that name. False: another has it, or has
  // had it until now.
  bool Hear(const std::string& routing_id, const PeerName& name, TimeUs now);
  // After Hear was false: whom to ask whether it still exists, and the number that its answer is to
  // repeat. None when it is not time to ask.
  struct Question {
    std::string to;  // a routing id
    uint64_t number = 0;
  };
  std::optional<Question> Ask(const std::string& routing_id, const PeerName& name, TimeUs now);
  // Who has the name turns out to be gone: the other one has it.
  void Replace(const std::string& routing_id, const PeerName& name, TimeUs now);
  // `routing_id`, who has the name, repeats a question's number. The routing id of the process that
  // is to be refused; none where it answers nothing that was asked.
  std::optional<std::string> Answer(const std::string& routing_id, const PeerName& name,
                                    uint64_t number);

  // Where a message to `name` goes; null when nobody has that name.
  const std::string* Find(const PeerName& name) const;

 private:
  struct Place {
    std::string holder;  // routing ids
    PeerName name;       // the holder's
    TimeUs heard = 0;
    std::string other;  // who wants the name; empty: nobody, or the holder has answered
    TimeUs wanted_at = 0;
    TimeUs other_heard = 0;
    uint64_t question = 0;
    TimeUs ask_at = 0;
  };

  // What one process at a time may have.
  std::string_view Exclusive(const PeerName& name) const;
  void MakeRoom();

  const TimeUs silent_us_;
  const bool one_worker_per_name_;
  uint64_t questions_ = 0;
  std::unordered_map<std::string, Place> places_;
};

}  // namespace kumo
