// Evaluations that their workers keep, where versions are kept twice, until a later coordinator
// would know of them too.
//
// What came during one version is in the coordinator's state of the next one; that is kept twice
// when the one after it is made. It need not have come during the version that was evaluated: what
// is sent again to a new server 0 may be overtaken by the contributions.
//
// Owned by TrainingProgress; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/transport/message.h"
#include "server/protocol/actions.h"

namespace kumo {

class HeldEvaluations {
 public:
  // A partition's evaluation of a version came when chunk 0 was at `now`.
  void Hold(int64_t version, int partition, int64_t now);
  // Answers an evaluation, which may have come before: its sender keeps it where it is held.
  void Answer(const PeerName& from, const wire::Header& header, StepContext* context);
  // Chunk 0 has reached a version: tells those who need not keep theirs any more.
  void Release(int64_t version, StepContext* context);
  // The job goes back.
  void Forget() { held_.clear(); }

 private:
  struct Held {
    int64_t came_at = 0;                      // chunk 0's version then
    std::map<PeerName, SendAction> released;  // what each sender is told at last
  };
  std::map<std::pair<int64_t, int>, Held> held_;  // by version, partition
};

}  // namespace kumo
