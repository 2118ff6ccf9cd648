// Processes of a simulated cluster: the state machine and the condition of each.
//
// Owned by the Cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/disks/checkpoint_survey.h"
#include "server/disks/disk.h"
#include "server/node/server_node.h"
#include "tests/sim/cluster.h"
#include "tests/sim/fake_trainer.h"
#include "worker/session/session.h"

namespace kumo::sim {

struct Cluster::Process {
  int index = 0;
  bool alive = true;
  bool frozen = false;
  TimeUs stopped = 0;               // time that it was frozen, left out of its clock
  bool deaf = false, mute = false;  // cut off: nothing comes in, nothing goes out
};

struct Cluster::ServerProcess : Process {
  std::unique_ptr<ServerNode> node;
  std::unique_ptr<CheckpointSurvey> survey;  // before there is a node
  // With checkpoint.disks = private. A disk that is lost lives as long as its process.
  std::shared_ptr<MemoryFileSystem> files;
  std::unique_ptr<kumo::Disk> disk;
  uint64_t incarnation = 1;
  bool again = false;  // takes the place of a process that ended
  Status status;
};

struct Cluster::WorkerProcess : Process {
  uint64_t incarnation = 0;
  bool leaves = false;
  std::optional<Session> session;
  std::unique_ptr<FakeTrainer> trainer;
};

}  // namespace kumo::sim
