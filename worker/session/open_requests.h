// Open requests: the messages to servers that are not answered yet, with their retries.
//
// Identity. Each request has a number that its answer repeats (Header.request) and stays open until
// an answer takes it out. Retries use the same number, so a request may be answered twice: an
// answer counts only while the request of its number is open, and only from the server that was
// asked. A request that is made again after a rollback gets a new number.
//
// Retries. Messages are hardly ever lost except with their connection, and SendAgain repeats the
// requests of a new connection. Timers cover the other losses. Their intervals are long, because on
// a slow network an answer may take seconds to arrive. The timers of a server's requests stand
// still while the server answers others of them for the first time.
//
// Windows. To bound the queues of both ends, only a limited number of requests per server and kind
// is in flight; the others wait in order. Kinds have separate windows because a server holds a PULL
// or a GET_STATE until a PUSH has arrived: behind a window full of pulls the push would wait for
// ever.
//
// Held requests. A held request has arrived, but its effect would be lost with the server. The
// worker no longer waits for it, but keeps it until the server reports it done, so that a
// replacement of the server can be asked again.
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
  TimeUs resend_at = 0;  // valid once it was sent
  TimeUs interval = 0;   // 0: not sent yet
  bool held = false;
};

class OpenRequests {
 public:
  // window: the most requests of a kind that may be in flight to one server (ChunkWindow).
  // open_rounds: of a chunk, at most; a partition's push to a chunk replaces the one that many
  // rounds before, whose round has closed.
  OpenRequests(int window, int open_rounds) : window_(window), open_rounds_(open_rounds) {}

  // Opens a request and returns its number. It replaces an open request for the same object.
  uint64_t Add(int server, Message message);
  // The requests to send now; their retry timers start.
  std::vector<const OpenRequest*> Send(TimeUs now);
  // The open request that a server's message answers; null if there is none.
  const OpenRequest* Find(int server, const wire::Header& answer) const;
  // True if an answer is awaited: a request of the type is open for the partition, and not held.
  bool Waits(wire::Type type, int partition) const;

  // Hold or close a request by its number, which must be open.
  void Hold(uint64_t number, TimeUs now);
  void Answered(uint64_t number, TimeUs now);
  // Closes a request whose answer is no longer of use.
  void Drop(uint64_t number);
  void Drop(wire::Type type, int partition);
  void Clear();

  // The requests to repeat at `now`; the interval doubles up to 40 s.
  std::vector<const OpenRequest*> Due(TimeUs now);
  // The connection to a server was made anew: sends again what is awaited from it.
  void SendAgain(int server);
  // A process has replaced the server: sends everything again, and awaits the held requests again.
  void Reopen(int server);
  // The time of the next retry; the maximum of TimeUs if there is none.
  TimeUs NextDue() const;
  // All requests of a type, including held ones.
  std::vector<const OpenRequest*> OfType(wire::Type type) const;
  // The first request of a type whose answer is awaited; null if there is none.
  const OpenRequest* First(wire::Type type) const;
  bool empty() const { return requests_.empty(); }

 private:
  // The object of a request. At most one request per key is open.
  struct Key {
    wire::Type type = wire::HELLO;
    int partition = 0;
    int chunk = 0;
    // A PULL's vector, a state's array, a PUSH's place among the open rounds, or an EVALUATED's
    // version (an earlier epoch's evaluation may still be held).
    int64_t which = 0;
    auto operator<=>(const Key&) const = default;
  };
  // The requests of one kind to one server that are not held.
  struct Flow {
    int on_their_way = 0;        // in flight
    std::set<uint64_t> waiting;  // by number, that is, in the order of Add
  };
  struct Server {
    std::array<Flow, 3> flows;
    TimeUs answered_at = 0;
  };

  Key KeyOf(const wire::Header& asked) const;
  OpenRequest& At(uint64_t number) { return requests_.at(numbers_.at(number)); }
  Flow& FlowOf(const OpenRequest& request);
  void Enqueue(OpenRequest* request);
  // Removes the request from its flow and its timer.
  void Withdraw(const OpenRequest& request);
  void Schedule(OpenRequest* request, TimeUs at, TimeUs interval);

  int window_, open_rounds_;
  std::map<Key, OpenRequest> requests_;
  std::map<uint64_t, Key> numbers_;  // the key of each request number
  std::map<int, Server> servers_;
  std::set<std::pair<TimeUs, uint64_t>> timers_;  // of the sent requests: due time, number
  uint64_t newest_ = 0;                           // the last number; none is used twice
};

}  // namespace kumo
