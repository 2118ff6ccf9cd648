// What `kumo launch` and `kumo check` are told of a job on this machine, and what comes of it: one
// resolution for both, so that what is checked is what is started.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/settings/command_line.h"
#include "common/settings/parser.h"

namespace kumo {

struct JobArguments {
  ExperimentArguments experiment;
  int workers = 0;                   // 0: cluster.workers
  int servers = 0;                   // 0: as many as cluster.servers names, or 1
  std::vector<std::string> devices;  // of the workers, in turn; empty: network.device
  std::string from;                  // a checkpoint or output folder of another job; "": none
  bool continues = false;            // also from a checkpoint of other settings
  bool verbose = false;              // show all settings
  bool json = false;

  explicit JobArguments(const CliEnvironment& environment) : experiment(environment) {}
  void AddTo(CommandLine* line);
  // Once the line is parsed: what options of the command line say about settings stands among
  // --set, so that every process hears it.
  void PassOn();
};

// A job as it is started on this machine.
struct PlannedJob {
  LoadedExperiment loaded;  // with --workers; cluster.servers empty: free ports are to be picked
  int servers = 1;          // processes
};

// What contradicts itself is among loaded.problems.
PlannedJob PlanJob(const CliEnvironment& environment, const JobArguments& args);

}  // namespace kumo
