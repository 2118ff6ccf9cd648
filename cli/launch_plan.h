// From what `kumo launch` is told to the processes that it starts.
//
// Pure function.
#pragma once

#include <string>
#include <vector>

#include "cli/job_arguments.h"
#include "cli/launcher.h"

namespace kumo {

struct LaunchArguments {
  JobArguments job;
  int max_restarts = 3;
  double grace_s = 0;  // 0: checkpoint.grace_s
  bool quiet = false;

  explicit LaunchArguments(const CliEnvironment& environment) : job(environment) {}
};

// servers: their addresses.
LaunchPlan MakeLaunchPlan(const LaunchArguments& args, const Experiment& experiment,
                          const std::vector<std::string>& servers,
                          const std::string& log_directory);

}  // namespace kumo
