// What server 0 says of a round. It travels with the weights that the round starts from and comes
// back with the pushes that end it, so that every process acts on the same round.
#pragma once

#include <cstdint>
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

// An order to save a version without waiting for a round's end.
struct SaveOrder {
  int64_t version = -1;
  int attempt = 0;       // counts the orders; 0: none yet
  bool partial = false;  // even where what partitions carry is not there
};

}  // namespace kumo
