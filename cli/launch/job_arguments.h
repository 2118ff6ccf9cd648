// Job arguments: the options that `kumo launch` and `kumo check` share, and the planned job. Both
// use the same plan, so that what is checked is what is started.
//
// Owned by a command, filled by its CommandLine; one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/environment.h"
#include "common/settings/command_line.h"
#include "common/settings/parser.h"

namespace kumo {

struct JobArguments {
  ExperimentArguments experiment;
  int workers = 0;                   // 0: cluster.workers
  int servers = 0;                   // 0: the number of addresses in cluster.servers, or 1
  std::vector<std::string> devices;  // of the workers, in rotation; empty: network.device
  std::string from;                  // a checkpoint or output folder of another job; "": none
  bool partial = false;              // also with few tensors from there
  bool continues = false;            // also from a checkpoint with other settings
  bool verbose = false;              // show all settings
  bool json = false;
  int columns = 0;      // of tables at most; 0: no limit
  Variables variables;  // of the environment

  explicit JobArguments(const CliEnvironment& environment)
      : experiment(environment), columns(environment.columns), variables(environment.variables) {}
  void AddTo(CommandLine* line);
  // Call after parsing: converts options that stand for settings to --set, so that all processes
  // get them. InvalidArgument if no setting can hold the path of --from.
  Status PassOn();
};

// A job to start on this machine.
struct PlannedJob {
  LoadedExperiment loaded;  // with --workers; empty cluster.servers: pick free ports
  int servers = 1;          // number of server processes
};

// Contradictions are added to loaded.problems.
PlannedJob PlanJob(const CliEnvironment& environment, const JobArguments& args);

}  // namespace kumo
