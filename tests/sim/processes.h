// The processes of a simulated cluster: the machine of each, and what has become of it.
//
// Owned by the Cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/server_node.h"
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
  uint64_t incarnation = 1;
  Status status;
};

struct Cluster::WorkerProcess : Process {
  uint64_t incarnation = 0;
  bool leaves = false;
  std::optional<Session> session;
  std::unique_ptr<FakeTrainer> trainer;
};

}  // namespace kumo::sim
