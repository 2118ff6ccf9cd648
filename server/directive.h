// What server 0 says of a round. It travels with the weights that the round starts from and comes
// back with the pushes that end it, so that every process acts on the same round.
#pragma once

#include <memory>

#include "proto/wire.pb.h"

namespace kumo {

// What the coordinator says about the round that starts from a version.
struct Directive {
  bool save = false;  // a checkpoint is taken when that round closes
  bool stop = false;  // and the job stops then
  bool move = false;  // and leases move then: workers wait for their orders
  // What the coordinator goes on from should it be started again; where versions are kept twice.
  std::shared_ptr<const wire::CoordinatorState> state = nullptr;
};

}  // namespace kumo
