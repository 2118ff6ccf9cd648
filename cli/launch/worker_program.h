// Worker program: the program of worker.command, which `kumo launch` starts in the place of
// kumo-worker, and the environment by which it finds the job (worker/library/kumo_worker.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/launch/job_arguments.h"
#include "common/base/status.h"
#include "common/settings/config_file.h"
#include "common/settings/experiment.h"

namespace kumo {

// The words of worker.command; the first one is the program's path, which is looked up in PATH if
// it contains no '/'. Requires experiment.worker.OwnsModel(). FailedPrecondition if there is no
// such program.
Result<std::vector<std::string>> WorkerProgram(const Experiment& experiment,
                                               const Variables& variables);

// The same on another host, whose own PATH counts: kumo remote passes the KUMO_ variables of
// WorkerEnvironment on, and `env` sets the others. The errors of WordsOfCommand.
Result<std::vector<std::string>> RemoteWorkerProgram(const Experiment& experiment,
                                                     const ExperimentArguments& arguments,
                                                     const Variables& variables);

// Additions to the environment of such a process. name: of the worker. sets: "section.key=value"
// each, over the settings of the experiment file. device: with --devices; "": none is chosen. The
// folder of Kumo's Python package is put before the others of PYTHONPATH.
std::vector<std::pair<std::string, std::string>> WorkerEnvironment(
    const ExperimentArguments& experiment, const std::vector<std::string>& sets,
    const std::string& name, const std::string& device, const Variables& variables);

}  // namespace kumo
