// What a worker has asked of the servers and is not answered yet.
//
// A request is open until its answer takes it out. It is repeated meanwhile, so it may be answered
// twice: an answer counts only while a request with its key and its round is open. A message is
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
  // One request of each key is open at most.
  struct Key {
    wire::Type type = wire::HELLO;
    int partition = 0;
    int chunk = 0;
    int which = 0;  // Header.slot: a state's array, a PULL's vector, an EVALUATED's epoch
    auto operator<=>(const Key&) const = default;
  };
  struct Request {
    int server = 0;
    Message message;
    TimeUs resend_at = 0;
    TimeUs interval = 0;
    bool held = false;
  };

  // The message is repeated from now on, in place of an open request with the same key (its
  // header's type, partition, chunk and slot).
  const Message& Add(int server, Message message, TimeUs now);
  // Whether an answer with this key and round is still waited for.
  bool Waits(const Key& key, int64_t round) const;
  bool Waits(const Key& key) const;
  bool Waits(wire::Type type, int partition) const;

  void Hold(const Key& key, TimeUs now);
  void Drop(const Key& key) { requests_.erase(key); }
  void Drop(wire::Type type, int partition);
  void Clear() { requests_.clear(); }

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
  std::map<Key, Request> requests_;
};

}  // namespace kumo
