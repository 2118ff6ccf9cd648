// Sweep manifests: a folder with the Kubernetes manifests of each run of a sweep, and queue.sh,
// which applies them one after another.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/manifests/run_manifests.h"
#include "cli/sweep/sweep_points.h"
#include "common/base/status.h"
#include "common/settings/parser.h"

namespace kumo {

struct SweepManifests {
  std::string folder;  // is created; an existing one is refused
  std::string k8s;     // installed folder of the base and the components
  std::string about;   // LeadingComment of the experiment file
  // Components and images of each run; workers and servers: 0: the experiment's.
  ClusterRun like;
  // The experiment of a point; of a point without settings, the sweep's.
  std::function<LoadedExperiment(const SweepPoint& point)> load;
  // Called with notes on the runs for the user; a note on several runs comes once.
  std::function<void(const std::string& note)> on_note;
};

// Writes the folder, with a folder for each point. Returns the names of the runs, in the order of
// the points, or the problems; then the folder does not exist.
struct WrittenSweep {
  std::vector<std::string> names;
  std::vector<Status> problems;
};
WrittenSweep WriteSweepManifests(const SweepManifests& sweep, std::span<const SweepPoint> points);

}  // namespace kumo
