// From what `kumo launch` is told to the processes that it starts.
//
// Pure function.
#pragma once

#include <string>
#include <vector>

#include "cli/job_arguments.h"
#include "cli/launch/host_list.h"
#include "cli/launch/launcher.h"

namespace kumo {

struct LaunchArguments {
  JobArguments job;
  int max_restarts = 3;
  double grace_s = 0;  // 0: checkpoint.grace_s
  bool quiet = false;
  bool no_page = false;
  // Of several hosts.
  std::string host_list, host_file;
  std::vector<Host> hosts;  // what these say; empty: this machine
  std::string ssh = "ssh";
  int port = 7700;  // of a host's first server

  std::string kumo;  // this program

  explicit LaunchArguments(const CliEnvironment& environment)
      : job(environment), kumo(environment.binary_directory + "/kumo") {}
};

// servers: their addresses. http: where server 0 is to show the job; "": as the experiment says.
// The errors of Place, of several hosts.
Result<LaunchPlan> MakeLaunchPlan(const LaunchArguments& args, const Experiment& experiment,
                                  const std::vector<std::string>& servers, const std::string& http,
                                  const std::string& log_directory);
// What `kumo launch` runs on another host, behind kumo remote.
std::vector<std::string> OnHost(const LaunchArguments& args, const std::string& host,
                                const std::vector<std::string>& command);

}  // namespace kumo
