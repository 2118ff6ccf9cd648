// Stop requests: the requests to stop that a process has got by signals. Terminals and `timeout`
// signal a process and its group one right after the other, so signals within a short time are one
// request. A first request usually lets a process save its state; a second one ends it.
//
// A value; one thread.
#pragma once

#include "common/base/clock.h"

namespace kumo {

class StopRequests {
 public:
  // same_within: a signal sooner than this after the last request is the same request. A person
  // takes longer to press keys twice.
  explicit StopRequests(TimeUs same_within) : same_within_(same_within) {}

  // A signal has come. Returns the number of the request that it makes, from 1 on; 0 if it is the
  // same request as an earlier signal.
  int OnSignal(TimeUs now) {
    if (count_ > 0 && now - last_ < same_within_) return 0;
    last_ = now;
    return ++count_;
  }
  // Whether there has been a request.
  bool any() const { return count_ > 0; }

 private:
  TimeUs same_within_;
  TimeUs last_ = 0;  // time of the last request
  int count_ = 0;
};

}  // namespace kumo
