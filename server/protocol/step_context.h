// What one call into a server's state machines is about: when it is made, and what it asks for. It
// is handed down from the call to whoever takes part in it, so that nobody keeps a time or a list
// of actions between two calls.
#pragma once

#include <utility>

#include "common/base/clock.h"
#include "server/protocol/actions.h"

namespace kumo {

struct StepContext {
  TimeUs now = 0;
  ServerActions actions;  // in the order in which they are to be carried out

  void Do(ServerAction action) { actions.push_back(std::move(action)); }
};

}  // namespace kumo
