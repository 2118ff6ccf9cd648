// Run folder: the input of `kubectl apply -k` for one run. It has the run's experiment and
// kustomization.yaml (run_manifests.h), the network file, and the base and the components of this
// installation.
//
// Functions, which block. k8s: the installed folder of the base and the components.
#pragma once

#include <string>
#include <vector>

#include "cli/manifests/run_manifests.h"
#include "common/base/process/exit_report.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"
#include "common/settings/parser.h"

namespace kumo {

// Options of the commands that write run folders.
struct RunFolderOptions {
  std::vector<std::string> with;  // components, several separated by commas
  std::string image = "kumo:latest";
  std::string worker_image;  // "": image

  void AddTo(CommandLine* line);
};

// A run with these components and this image, which has no name and no processes yet.
// InvalidArgument for an unknown component or a malformed image, FailedPrecondition if nothing is
// installed in `k8s`.
Result<ClusterRun> RunWith(const RunFolderOptions& options, const std::string& k8s);

// Reports an error of RunWith or CheckRunName. Returns the exit code: 64 for a mistake on the
// command line.
int SayRefusedRun(const ExitReporter& exit_reporter, const Status& status);

// Takes the numbers that are 0 in `run` from the experiment.
void TakeProcesses(const Experiment& experiment, ClusterRun* run);

// Settings that cannot work in pods or with the run's numbers of processes, and a folder `out` that
// exists.
std::vector<Status> ProblemsOfRunFolder(const LoadedExperiment& loaded, const ClusterRun& run,
                                        const std::string& out);

// Pods that would be idle, a line each.
std::vector<std::string> NotesOfRunFolder(const LoadedExperiment& loaded, const ClusterRun& run);

// Writes the folder `out`; if that fails, it does not exist afterwards. about: the LeadingComment
// of the experiment file.
Status WriteRunFolder(const std::string& k8s, const LoadedExperiment& loaded,
                      const std::string& about, const ClusterRun& run, const std::string& out);

}  // namespace kumo
