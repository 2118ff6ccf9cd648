#include "common/transport/speakers.h"

#include <utility>

namespace kumo {

void Speakers::Accepted(int fd) {
  Closed(fd);
  open_[fd];
}

void Speakers::Closed(int fd) {
  const auto closed = open_.find(fd);
  if (closed == open_.end()) return;
  const auto current = current_.find(closed->second);
  // A process that has connected anew before its old connection ended is not gone.
  if (current != current_.end() && current->second == fd) {
    gone_.push_back(closed->second);
    current_.erase(current);
  }
  former_[fd] = closed->second;
  open_.erase(closed);
}

bool Speakers::Knows(int fd, const std::string& routing_id) const {
  const auto open = open_.find(fd);
  return open != open_.end() && open->second == routing_id;
}

bool Speakers::Spoke(int fd, const std::string& routing_id) {
  // If a process connects anew, ZeroMQ gives the rest of its old connection an id that begins with
  // 0.
  if (routing_id.starts_with('\0')) return false;
  const auto open = open_.find(fd);
  if (open == open_.end()) return false;
  if (std::string& speaker = open->second; !speaker.empty() && speaker != routing_id) {
    // One of them is the descriptor's former owner, whose messages are late.
    if (speaker != former_[fd]) return false;
    if (const auto current = current_.find(speaker);
        current != current_.end() && current->second == fd) {
      gone_.push_back(speaker);
      current_.erase(current);
    }
  }
  open->second = routing_id;
  current_[routing_id] = fd;
  return true;
}

std::vector<std::string> Speakers::TakeGone() { return std::exchange(gone_, {}); }

}  // namespace kumo
