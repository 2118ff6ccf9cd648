// The processes of a simulated cluster: the machine of each, and what has become of it.
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
  bool deaf = false, mute = false;  // cut off: nothing comes in, nothing goes out
};

struct Cluster::ServerProcess : Process {
  std::unique_ptr<ServerNode> node;
  std::unique_ptr<CheckpointSurvey> survey;  // before there is a node
  // Of its own (checkpoint.disks = private); a disk that is lost is there as long as its process.
  std::shared_ptr<MemoryFileSystem> files;
  std::unique_ptr<kumo::Disk> disk;
  uint64_t incarnation = 1;
  bool again = false;  // in the place of one that ended
  Status status;
};

struct Cluster::WorkerProcess : Process {
  uint64_t incarnation = 0;
  bool leaves = false;
  std::optional<Session> session;
  std::unique_ptr<FakeTrainer> trainer;
};

}  // namespace kumo::sim
