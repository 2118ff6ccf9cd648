// What a worker has asked of the servers and is not answered yet.
//
// Each request has a number of its own, which its answer repeats (Header.request), and is open
// until that takes it out. It is repeated meanwhile, by the same number, so it may be answered
// twice: an answer counts only while the request of its number is open, at the server that it comes
// from. What was asked before a job went back, and is asked again, is another request. A message is
// lost with a connection only, and OfServer then repeats what was asked there; the timers are for
// the rest, and long: a slow network may need seconds for an answer on its way.
//
// A request may be held: it has arrived, but would be lost with its server. Nobody waits for it,
// but it stays, in case another process takes the server's place, until the server says that it is
// done.
//
// Owned by a Session; one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/job/transport/message.h"

namespace kumo {

class OpenRequests {
 public:
  // What is asked for. One request of each key is open at most.
  struct Key {
    wire::Type type = wire::HELLO;
    int partition = 0;
    int chunk = 0;
    // A PULL's vector, a state's array, and an EVALUATED's version: that of an earlier epoch may
    // still be held.
    int64_t which = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Request {
    int server = 0;
    Message message;
    TimeUs resend_at = 0;
    TimeUs interval = 0;
    bool held = false;
  };

  // The message gets a number, and is repeated from now on, in place of an open request with the
  // same key.
  const Message& Add(int server, Message message, TimeUs now);
  // The open request that a server's message answers; null when there is none (any more).
  const Request* Find(int server, const wire::Header& answer) const;
  // Whether what is asked for is open, as of a round.
  bool Waits(const Key& key, int64_t round) const;
  // Whether its answer is waited for: it is not held.
  bool Waits(const Key& key) const;
  bool Waits(wire::Type type, int partition) const;

  // By the request's number, which must be open.
  void Hold(uint64_t number, TimeUs now);
  void Drop(uint64_t number);
  void Drop(wire::Type type, int partition);
  void Clear();

  // What is due to be repeated at `now`; it is due again after twice the time, 40 s at most.
  std::vector<const Request*> Due(TimeUs now);
  // What is waited for from a server.
  std::vector<const Request*> OfServer(int server) const;
  // A process has taken the server's place: it is asked everything, and what was held is waited for
  // again. Returns it.
  std::vector<const Request*> Reopen(int server, TimeUs now);
  // When the next request is due; far away when none is open.
  TimeUs NextDue() const;
  // All of a type, held ones too.
  std::vector<const Request*> OfType(wire::Type type) const;
  // The first request of a type whose answer is waited for; null when there is none.
  const Request* First(wire::Type type) const;
  bool empty() const { return requests_.empty(); }

 private:
  static Key KeyOf(const wire::Header& asked);

  std::map<Key, Request> requests_;
  std::map<uint64_t, Key> numbers_;  // of each request
  uint64_t newest_ = 0;              // the last number that was given; none is given twice
};

}  // namespace kumo
