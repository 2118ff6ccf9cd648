// When something last moved in a job, and how long its last rounds took: what tells that it stands
// still, and that a round takes longer than it should.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <deque>

#include "common/base/clock.h"

namespace kumo {

class RoundClock {
 public:
  // Something else than a round's end: training begins or goes on, an evaluation has come.
  void Moved(TimeUs now) { moved_at_ = now; }
  // A round has closed.
  void OnClosed(TimeUs now);

  // How long nothing has moved.
  TimeUs Standstill(TimeUs now) const { return now - moved_at_; }
  // What the quicker ones of the last rounds took; 0 as long as there are too few.
  TimeUs TypicalRound() const;

 private:
  TimeUs moved_at_ = 0;
  std::deque<TimeUs> round_times_;  // how long the last rounds took
};

}  // namespace kumo
