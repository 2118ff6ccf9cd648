// Contributions (and evaluations) that arrived before this server knew that their sender has the
// lease: server 0
// tells a worker and the shards at the same time, and a worker may be quicker. They wait for server
// 0's word for a moment. What it does not bear out by then was never to count: it is said, dropped,
// and not acknowledged, so that an honest sender repeats it.
//
// At most kMostBytes wait; beyond that who has most here loses its own.
//
// Owned by a Holding; one thread.
#pragma once

#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/message.h"

namespace kumo {

class EarlyContributions {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;
  static constexpr TimeUs kPatience = 3 * kSecond;
  // They are tried again at most so often.
  static constexpr TimeUs kInterval = 10 * kMillisecond;

  struct Early {
    PeerName from;
    Message message;
    TimeUs since = 0;  // when it first came
  };

  bool empty() const { return waiting_.empty(); }
  // It waits. A copy of one that waits already takes its place, and its time.
  void Keep(Early early);
  // All of them, to be tried again, and none are left; none before it is time. Those that have
  // waited for too long are dropped, and the log says whose they were.
  std::vector<Early> TakeDue(TimeUs now);
  void Forget(const PeerName& peer);
  void Clear();

 private:
  // By sender, and what tells its contributions apart.
  using Key = std::tuple<PeerName, wire::Type, int, int, int64_t, int>;
  static Key KeyOf(const Early& early);
  void MakeRoom();

  std::map<Key, Early> waiting_;
  std::map<PeerName, size_t> bytes_;
  size_t all_bytes_ = 0;
  TimeUs tried_at_ = 0;
};

}  // namespace kumo
