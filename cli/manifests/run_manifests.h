// What Kubernetes is told of one run of an experiment: the files of an overlay over the base and
// the components that come with Kumo (k8s/).
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
  std::string name;  // on every object; also that of the folder below the servers' volume
  int workers = 1;
  int servers = 1;
  std::vector<std::string> components;  // names of folders in k8s/components, without doubles
  std::string image;                    // "registry/kumo:tag", "...@sha256:..."

  bool Has(std::string_view component) const;
};

// InvalidArgument, saying what it must be, for what cannot be part of objects' names.
Status CheckRunName(const std::string& name);
// The name nearest to `text` that can be one: "mnist_lenet" gives "mnist-lenet". It may still be
// none.
std::string RunNameOf(const std::string& text);

// What an experiment says that cannot be so in pods, one error for each; `loaded` has no problems.
std::vector<Status> ProblemsInPods(const LoadedExperiment& loaded, const ClusterRun& run);

// The experiment as its pods read it, in one file: what `loaded` sets, but for what the run
// decides. The job's name stays, so that its hash is that of the experiment anywhere. about: its
// LeadingComment.
std::string PodExperimentText(const LoadedExperiment& loaded, const ClusterRun& run,
                              const std::string& about);

// The file kustomization.yaml; experiment.conf, the network's file, base/ and components/ are
// beside it.
std::string KustomizationText(const LoadedExperiment& loaded, const ClusterRun& run);

}  // namespace kumo
