// The connections that have not said a word since they were accepted: where keys are needed, who
// has none never does. Their number is bounded, so that those who come without cost neither
// descriptors nor memory: one too many ends the one that has been silent for the longest time.
//
// They are counted, and told of in the log at a bounded rate.
//
// Owned by the socket that listens, used by its loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace kumo {

class PendingConnections {
 public:
  // As many honest processes may be shaking hands at the same time; those beyond come again.
  static constexpr size_t kMost = 256;

  // end: closes the connection of a descriptor, which Closed is then told.
  explicit PendingConnections(std::function<void(int fd)> end) : end_(std::move(end)) {}

  void Accepted(int fd);
  void Spoke(int fd);
  void Closed(int fd);

  // Connections that were closed, by whomever, without a word.
  uint64_t left() const { return left_; }

 private:
  const std::function<void(int fd)> end_;
  std::list<int> silent_;  // the longest first
  std::unordered_map<int, std::list<int>::iterator> places_;
  uint64_t left_ = 0;
};

}  // namespace kumo
