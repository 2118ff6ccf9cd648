// What a worker has asked of the servers and is not answered yet.
//
// Each request has a number of its own, which its answer repeats (Header.request), and is open
// until that takes it out. It is repeated meanwhile, by the same number, so it may be answered
// twice: an answer counts only while the request of its number is open, at the server that it comes
// from. What was asked before a job went back, and is asked again, is another request. A message is
// lost with a connection only, and SendAgain then repeats what was asked there; the timers are for
// the rest, and long: a slow network may need seconds for an answer on its way. They do not run
// while the server answers others for the first time.
//
// So that neither end has to drop anything, only so many requests are on their way at a time, for
// each server and kind: the others wait, in their order, until one of those is answered. Kinds have
// windows of their own because a server keeps a pull, or a question for a state that is still on
// its way, until a push has come: behind a window full of them the push would wait for ever.
//
// A request may be held: it has arrived, but would be lost with its server. Nobody waits for it,
// but it stays, in case another process takes the server's place, until the server says that it is
// done.
//
// Owned by a Session; one thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/message.h"

namespace kumo {

struct OpenRequest {
  int server = 0;
  Message message;
  TimeUs resend_at = 0;  // once it was sent
  TimeUs interval = 0;   // 0: waits to be sent
  bool held = false;
};

class OpenRequests {
 public:
  // window: how many requests of a kind may be on their way to a server (ChunkWindow).
  explicit OpenRequests(int window) : window_(window) {}

  // The message gets a number, which is returned, and is open from now on, in place of a request
  // for the same.
  uint64_t Add(int server, Message message);
  // What is to be sent now; it is repeated from now on.
  std::vector<const OpenRequest*> Send(TimeUs now);
  // The open request that a server's message answers; null when there is none (any more).
  const OpenRequest* Find(int server, const wire::Header& answer) const;
  // Whether an answer is waited for: requests of the type are open for the partition, and not held.
  bool Waits(wire::Type type, int partition) const;

  // The request is answered, by its number, which must be open.
  void Hold(uint64_t number, TimeUs now);
  void Answered(uint64_t number, TimeUs now);
  // Its answer is of no use any more.
  void Drop(uint64_t number);
  void Drop(wire::Type type, int partition);
  void Clear();

  // What is due to be repeated at `now`; it is due again after twice the time, 40 s at most.
  std::vector<const OpenRequest*> Due(TimeUs now);
  // The connection to a server was made anew: what is waited for from it is sent again.
  void SendAgain(int server);
  // A process has taken the server's place: it is asked everything, and what was held is waited for
  // again.
  void Reopen(int server);
  // When the next request is due; far away when none is.
  TimeUs NextDue() const;
  // All of a type, held ones too.
  std::vector<const OpenRequest*> OfType(wire::Type type) const;
  // The first request of a type whose answer is waited for; null when there is none.
  const OpenRequest* First(wire::Type type) const;
  bool empty() const { return requests_.empty(); }

 private:
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
  // The requests of a kind to a server that are not held.
  struct Flow {
    int on_their_way = 0;
    std::set<uint64_t> waiting;  // by number: in the order in which they were asked
  };
  struct Server {
    std::array<Flow, 3> flows;
    TimeUs answered_at = 0;
  };

  static Key KeyOf(const wire::Header& asked);
  OpenRequest& At(uint64_t number) { return requests_.at(numbers_.at(number)); }
  Flow& FlowOf(const OpenRequest& request);
  void Enqueue(OpenRequest* request);
  // Takes the request out of its flow and its timer.
  void Withdraw(const OpenRequest& request);
  void Schedule(OpenRequest* request, TimeUs at, TimeUs interval);

  int window_;
  std::map<Key, OpenRequest> requests_;
  std::map<uint64_t, Key> numbers_;  // of each request
  std::map<int, Server> servers_;
  std::set<std::pair<TimeUs, uint64_t>> timers_;  // of what was sent: when it is due, number
  uint64_t newest_ = 0;  // the last number that was given; none is given twice
};

}  // namespace kumo
