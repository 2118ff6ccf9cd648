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
  open_.erase(closed);
}

bool Speakers::Knows(int fd, const std::string& routing_id) const {
  const auto open = open_.find(fd);
  return open != open_.end() && open->second == routing_id;
}

bool Speakers::Spoke(int fd, const std::string& routing_id) {
  const auto open = open_.find(fd);
  if (open == open_.end()) return false;
  // The descriptor is of a newer connection, of another process.
  if (!open->second.empty() && open->second != routing_id) return false;
  open->second = routing_id;
  current_[routing_id] = fd;
  return true;
}

std::vector<std::string> Speakers::TakeGone() { return std::exchange(gone_, {}); }

}  // namespace kumo
