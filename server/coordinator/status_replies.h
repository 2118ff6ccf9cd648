// Answers to whoever asks for the job's status. One is made at most every 20 ms, and of many
// workers once a second, however many ask; and it always fits into a header: of a job with so many
// workers that it would not, the last ones are left out, and counted.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstddef>

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "server/coordinator/job_state.h"
#include "server/protocol/actions.h"

namespace kumo {

class StatusReplies {
 public:
  // For how long an answer of so many workers is given again: what is made of one takes a few
  // microseconds, so that questions cost half a percent of a core.
  static TimeUs Interval(int workers);
  // Of the 1 MiB that a header may have.
  static constexpr size_t kMostBytes = 900'000;

  void Answer(const PeerName& to, const JobState& job, StepContext* context);

 private:
  SendAction reply_;
  TimeUs made_at_ = 0;
};

// What fits of a status.
wire::JobStatus Shortened(wire::JobStatus status, size_t most_bytes);

}  // namespace kumo
