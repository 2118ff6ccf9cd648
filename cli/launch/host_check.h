// Whether the hosts that a job is to run on can be used at all.
//
// Function; blocks for some seconds where one of them does not answer.
#pragma once

#include "cli/launch/launch_plan.h"
#include "cli/launch/preflight.h"

namespace kumo {

// Asks each host, all at once, for the version of its kumo-worker; a problem for each that is not
// reached, has none where this one is, or another version.
void CheckHosts(const LaunchArguments& args, Preflight* result);

}  // namespace kumo
