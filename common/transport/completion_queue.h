// Completion queue: results of other threads, as functions that the loop thread runs.
//
// Thread-safety: any thread may call Add, the loop thread alone Run.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/transport/zmq_transport.h"

namespace kumo {

// Actions: the result of a state machine's step.
template <typename Actions>
class CompletionQueue {
 public:
  using Completion = std::function<Actions(TimeUs now)>;

  // Both are borrowed for life.
  CompletionQueue(ZmqTransport* transport, const Clock* clock)
      : transport_(transport), clock_(clock) {}

  // Ends the current or the next Poll of the transport.
  void Add(Completion completion) KUMO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      completions_.push_back(std::move(completion));
    }
    transport_->Wake();
  }

  // Runs the functions added so far, in order, and gives the actions of each to `perform`.
  template <typename Perform>
  void Run(const Perform& perform) KUMO_EXCLUDES(mutex_) {
    std::vector<Completion> completions;
    {
      MutexLock lock(mutex_);
      completions.swap(completions_);
    }
    for (Completion& completion : completions) perform(completion(clock_->NowUs()));
  }

 private:
  ZmqTransport* const transport_;
  const Clock* const clock_;
  Mutex mutex_;
  std::vector<Completion> completions_ KUMO_GUARDED_BY(mutex_);
};

}  // namespace kumo
