// Kubernetes manifests of one run of an experiment: the files of an overlay over the installed base
// and components (k8s/).
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/settings/parser.h"

namespace kumo {

struct ClusterRun {
  std::string name;  // in all objects; also the folder on the servers' volume
  int workers = 1;
  int servers = 1;
  std::vector<std::string> components;  // folders in k8s/components, without doubles
  std::string image;                    // "registry/kumo:tag", "...@sha256:..."
  std::string worker_image = "";        // of the workers' containers; "": image

  bool Has(std::string_view component) const;
};

// InvalidArgument, with the rules, if the name cannot be part of object names.
Status CheckRunName(const std::string& name);
// The nearest valid name: "mnist_lenet" gives "mnist-lenet". It may still be invalid.
std::string RunNameOf(const std::string& text);

// The settings of an experiment that cannot work in pods or with the run's numbers of servers and
// workers, one error each; `loaded` has no problems.
std::vector<Status> ProblemsInPods(const LoadedExperiment& loaded, const ClusterRun& run);

// True if output.final_model names one folder for all runs of such manifests, instead of a folder
// of the run or on a volume of its own servers.
bool SharesFinalModel(const Experiment& experiment, const ClusterRun& run);

// The experiment file for the pods: the settings of `loaded` except those that the run decides. The
// job's name stays, so that the experiment's hash is the same everywhere. about: its
// LeadingComment.
std::string PodExperimentText(const LoadedExperiment& loaded, const ClusterRun& run,
                              const std::string& about);

// The file kustomization.yaml; experiment.conf, the network file, base/ and components/ are beside
// it.
std::string KustomizationText(const LoadedExperiment& loaded, const ClusterRun& run);

}  // namespace kumo
