// Host check: the machines of a launch, asked before it.
#pragma once

#include "cli/launch/launch_plan.h"
#include "cli/launch/preflight.h"

namespace kumo {

// Asks all hosts at once for the version of their kumo-worker. Adds a problem for each host that
// cannot be reached, has no kumo-worker although this machine has one, or has another version.
// Blocks some seconds for a host that does not answer.
void CheckHosts(const LaunchArguments& args, Preflight* result);

}  // namespace kumo
