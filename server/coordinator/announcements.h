// Announcements: messages that the coordinator makes of a job's state: orders for members, the
// status for people, and the state for a later coordinator.
//
// Functions of the state, which they do not change; StatusReplies keeps a reply for repetition.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "server/coordinator/job_state.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"

namespace kumo {

// The processes that the job waits for: at its start, after a loss, when it goes back. "" if all
// that it needs are there. "server 1 at tcp://beta:7700, 1 of 2 workers"
std::string WaitsForProcesses(const JobState& job, TimeUs now);
// The same, and during training the partitions that the open round waits for.
std::string WaitsFor(const JobState& job, TimeUs now);

// The job has closed no round, and got no evaluation, for much longer than usual.
bool IsLate(const JobState& job, TimeUs now);

// Orders are complete each time, so a lost message changes nothing.
void SendOrders(const JobState& job, const PeerName& to, StepContext* context);
void SendOrdersToAll(const JobState& job, StepContext* context);

// The status of the job, for the progress line, the page and `kumo status`. Names partitions that
// are waited for only if they are late.
wire::JobStatus StatusOf(const JobState& job, TimeUs now);
// A status of at most so many bytes: the last workers are left out, and counted.
wire::JobStatus Shortened(wire::JobStatus status, size_t most_bytes);

// The state for a later coordinator, which travels with a version of chunk 0 to the next server if
// versions are kept twice. Requires that the version's directive is made.
std::shared_ptr<const wire::CoordinatorState> SuccessorsState(const JobState& job, TimeUs now);

// Status replies: answers to STATUS of any process. A reply is repeated for a while, so that many
// questions cost little, and always fits into a header.
//
// Owned by the Coordinator; one thread.
class StatusReplies {
 public:
  // Time for which the reply of a job with this number of workers is repeated. Describing a worker
  // takes a few microseconds, so replies cost at most half a percent of a core.
  static TimeUs Interval(int workers);
  // Longest reply, below the 1 MiB that a header may have.
  static constexpr size_t kMostBytes = 900'000;

  void Answer(const PeerName& to, const JobState& job, StepContext* context);

 private:
  SendAction reply_;
  TimeUs made_at_ = 0;
};

}  // namespace kumo
