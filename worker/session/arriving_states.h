// What partitions carry from round to round, on its way from the servers to the worker that has
// come to compute them: it is asked of each shard, kept until all is there, and adopted.
//
// Owned by a Rounds; one thread.
#pragma once

#include <map>
#include <set>
#include <tuple>

#include "common/transport/message.h"
#include "worker/session/job_shape.h"
#include "worker/session/leases.h"
#include "worker/session/step_context.h"

namespace kumo {

class ArrivingStates {
 public:
  // shape is borrowed for life.
  explicit ArrivingStates(const JobShape* shape) : shape_(shape) {}

  // Asks for what has not come, where it is not asked for already; nothing where there is nothing
  // to carry.
  void AskFor(int partition, const Lease& lease, WorkerStepContext* context);
  // The answer to what was asked for. False where its length does not fit: it stays asked for.
  bool OnState(const wire::Header& asked, const Payload& payload);
  // Hands over what has come.
  AdoptAction Take(int partition);
  // What was asked for of the partition is not on its way any more: AskFor is to ask again.
  void AskAgain(int partition) { asked_.erase(partition); }
  void Forget(int partition);
  void ForgetAll();

 private:
  const JobShape* shape_;
  std::set<int> asked_;                                  // partitions
  std::map<std::tuple<int, int, int>, Payload> states_;  // partition, chunk, array
};

}  // namespace kumo
