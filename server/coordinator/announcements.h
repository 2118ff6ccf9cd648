// What a coordinator says of a job: to members their orders, to people its status, to its successor
// what to go on from. Functions of the job's state, which they do not change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/transport/message.h"
#include "server/coordinator/job_state.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"

namespace kumo {

// Whom the job waits for: at its start, when one is lost, when it goes back. "" when all that it
// needs are there. "server 1 at tcp://beta:7700, 1 of 2 workers"
std::string WaitsForProcesses(const JobState& job, TimeUs now);
// The same, and while it trains the partitions that the round waits for.
std::string WaitsFor(const JobState& job, TimeUs now);

// Orders are the whole truth each time: a lost message changes nothing.
void SendOrders(const JobState& job, const PeerName& to, StepContext* context);
void SendOrdersToAll(const JobState& job, StepContext* context);

wire::JobStatus StatusOf(const JobState& job, TimeUs now);

// What goes with a version to the next server, where versions are kept twice. said: of the round
// that starts from it.
std::shared_ptr<const wire::CoordinatorState> SuccessorsState(const JobState& job,
                                                              const Directive& said, TimeUs now);

}  // namespace kumo
