// Launch plan: converts the arguments of `kumo launch` to the processes to start. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/hosts.h"
#include "cli/launch/job_arguments.h"
#include "cli/launch/launcher.h"

namespace kumo {

struct LaunchArguments {
  JobArguments job;
  int max_restarts = 3;
  double grace_s = 0;  // 0: checkpoint.grace_s
  bool quiet = false;
  bool no_page = false;
  std::string run;  // name of this run, for server 0
  int port = 0;     // of a host's, or this machine's, first server; 0: not given
  // For several hosts:
  std::string host_list, host_file;
  std::vector<Host> hosts;  // from one of them; empty: this machine
  std::string ssh = "ssh";

  std::string kumo;  // path of this program

  explicit LaunchArguments(const CliEnvironment& environment)
      : job(environment), kumo(environment.binary_directory + "/kumo") {}
};

// servers: their addresses. http: address of server 0's status page; "": as the experiment says.
// The errors of Place for several hosts, and of WorkerProgram.
Result<LaunchPlan> MakeLaunchPlan(const LaunchArguments& args, const Experiment& experiment,
                                  const std::vector<std::string>& servers, const std::string& http,
                                  const std::string& log_directory);
// The command that runs `command` on another host through kumo remote.
std::vector<std::string> OnHost(const LaunchArguments& args, const std::string& host,
                                const std::vector<std::string>& command);

}  // namespace kumo
