// Speakers: the process behind each connection of a listening socket, to report connections that
// have ended. A process that is killed has its connections closed by the kernel at once.
//
// ZeroMQ delivers the last messages of a connection after it reports the end: such a message is
// late, and no sign of life. If its descriptor is used again by then, the message looks like one of
// the new connection, until the process behind that speaks.
//
// Owned by the listening socket, used by its loop thread only.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace kumo {

class Speakers {
 public:
  // A connection was made or has ended; its descriptor belongs to ZeroMQ.
  void Accepted(int fd);
  void Closed(int fd);

  // True if `fd` is an open connection over which `routing_id` has spoken.
  bool Knows(int fd, const std::string& routing_id) const;
  // A message of `routing_id` was delivered from `fd`. Returns false if the connection has ended.
  // All connections that were made before must be reported first (Accepted).
  bool Spoke(int fd, const std::string& routing_id);

  // Routing ids whose last connection has ended since the last call.
  std::vector<std::string> TakeGone();

 private:
  std::unordered_map<int, std::string> open_;     // routing id; "" until it speaks
  std::unordered_map<int, std::string> former_;   // likewise, of the descriptor's last connection
  std::unordered_map<std::string, int> current_;  // by routing id: its newest connection
  std::vector<std::string> gone_;
};

}  // namespace kumo
