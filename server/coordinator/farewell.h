// The end of a job as it is told to everybody.
//
// When it is over, server 0 leaves when everybody has said goodbye, which they do when they know of
// the end; whoever has not is told again. Who has died, or whose goodbye is lost, is waited for in
// vain, for a while.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "proto/wire.pb.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/stop_point.h"

namespace kumo {

class Farewell {
 public:
  void OnFinished(TimeUs now) { over_since_ = now; }
  void OnFailed(Status failure) { failure_ = std::move(failure); }
  // A tick while the job is over: whether it has been told for long enough.
  bool IsOver(TimeUs now);

  // What this process ends with.
  Status Outcome(Phase phase, const StopPoint& stop) const;
  // What members are told of the end, when chunk 0 is at `version`.
  void FillIn(Phase phase, const StopPoint& stop, int64_t version, wire::Header* header) const;

 private:
  Status failure_;
  TimeUs over_since_ = 0;
};

}  // namespace kumo
