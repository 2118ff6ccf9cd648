#include "common/transport/pending_connections.h"

#include <iterator>

#include <glog/logging.h>

namespace kumo {

void PendingConnections::Accepted(int fd) {
  // A descriptor that is used again: that its last connection has ended was not said.
  Closed(fd);
  places_[fd] = silent_.insert(silent_.end(), fd);
  if (silent_.size() <= kMost) return;
  const int oldest = silent_.front();
  Closed(oldest);
  end_(oldest);
}

void PendingConnections::Spoke(int fd) {
  const auto place = places_.find(fd);
  if (place == places_.end()) return;
  silent_.erase(place->second);
  places_.erase(place);
}

void PendingConnections::Closed(int fd) {
  if (!places_.contains(fd)) return;
  Spoke(fd);
  ++left_;
  LOG_EVERY_T(WARNING, 1) << "a connection has ended before it had said a word, as those do that "
                          << "have no key of this job; so have " << left_ << " in all";
}

}  // namespace kumo
