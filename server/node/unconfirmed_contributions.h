// Unconfirmed contributions: contributions, states and evaluations that arrived before this server
// knew that their senders hold the leases.
//
// Server 0 tells a worker and the shards of a lease at the same time, and the worker's message may
// arrive first. It waits for the lease table for a moment (kPatience). If the table does not
// confirm the lease by then, the message is dropped and logged, but not acknowledged, so an honest
// sender repeats it.
//
// At most kMostBytes wait; beyond that, the sender with the most bytes loses its own messages.
//
// Owned by a ShardHost; one thread.
#pragma once

#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/message.h"

namespace kumo {

class UnconfirmedContributions {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;
  static constexpr TimeUs kPatience = 3 * kSecond;
  // Shortest interval between two attempts.
  static constexpr TimeUs kInterval = 10 * kMillisecond;

  struct Entry {
    PeerName from;
    Message message;
    TimeUs since = 0;  // when it first came
  };

  bool empty() const { return waiting_.empty(); }
  // Keeps a message. A repeated one replaces its copy, and keeps the time of the first.
  void Keep(Entry entry);
  // Takes all messages out, for another attempt; empty before kInterval is over. Messages that have
  // waited too long are dropped and logged.
  std::vector<Entry> TakeDue(TimeUs now);
  void Forget(const PeerName& peer);
  void Clear();

 private:
  // The sender, and the fields that tell its messages apart.
  using Key = std::tuple<PeerName, wire::Type, int, int, int64_t, int>;
  static Key KeyOf(const Entry& entry);
  void MakeRoom();

  std::map<Key, Entry> waiting_;
  std::map<PeerName, size_t> bytes_;  // that wait, by sender
  size_t all_bytes_ = 0;
  TimeUs tried_at_ = 0;
};

}  // namespace kumo
