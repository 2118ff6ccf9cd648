// Which generation of the job this is, and where it starts.
//
// When weights are lost, or (cluster.recovery=exact) what partitions carried, the job goes back:
// the generation is raised, which makes every message of the time before count for nothing, all
// servers load the newest good checkpoint, and training begins there. Where versions are kept twice
// (cluster.replicas) a server that was started again gets its part from the next one instead: the
// generation is raised too, but all the others go on where they are.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "proto/checkpoint.pb.h"
#include "server/coordinator/member_table.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"

namespace kumo {

class Recovery {
 public:
  // generation: one that no process of this job has used before. may_be_further: the other servers
  // may have kept what the job is about. restored: the manifest of the checkpoint that the job goes
  // on from, if any.
  Recovery(uint32_t generation, bool may_be_further, std::optional<checkpoint::Manifest> restored);

  const Generation& generation() const { return generation_; }
  // Of the checkpoint that the generation starts from.
  const std::optional<checkpoint::Manifest>& restored() const { return restored_; }
  // This process may have been started in another one's place: it does not know yet whether the
  // other servers still have what the job is about.
  bool undecided() const { return undecided_; }
  // Since this process was started.
  bool went_back() const { return !went_back_why_.empty(); }

  // Decides that when all servers are there. True when they have it, and go on where they are.
  bool Decide(const std::vector<ServerMember>& servers, StepContext* context);
  // The job goes back, to a checkpoint that is not newer than `newest`: asks for one.
  void GoBack(const std::string& why, int64_t newest, StepContext* context);
  // A server fetches what it held, and everybody else goes on: asks for the number to be durable.
  void GoOn(StepContext* context);
  void OnReserved() { generation_.choosing = false; }
  // The answer to GoBack: the generation starts there. The error, with its context, where no
  // checkpoint is good. Requires generation().choosing.
  Status OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen, StepContext* context);
  // For what, where generation().choosing.
  std::string WaitsFor() const;

 private:
  void StartFrom(std::optional<checkpoint::Manifest> restored);

  Generation generation_;
  std::optional<checkpoint::Manifest> restored_;
  bool undecided_;
  std::string went_back_why_;  // "" in the first generation of this process
};

}  // namespace kumo
