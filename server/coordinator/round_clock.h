// Round clock: when the job last moved, and the durations of its last rounds.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <deque>

#include "common/base/clock.h"

namespace kumo {

class RoundClock {
 public:
  // Something other than a round's end: training begins or goes on, an evaluation has come.
  void Moved(TimeUs now) { moved_at_ = now; }
  // A round has closed.
  void OnClosed(TimeUs now);

  // Time since the job last moved.
  TimeUs Standstill(TimeUs now) const { return now - moved_at_; }
  // First quartile of the durations of the last rounds; 0 while there are too few.
  TimeUs TypicalRound() const;

 private:
  TimeUs moved_at_ = 0;
  std::deque<TimeUs> round_times_;  // durations of the last rounds
};

}  // namespace kumo
