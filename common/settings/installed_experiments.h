// Installed experiments: the experiment files that come with Kumo, which commands know by name.
//
// share: Installation::share. Functions without state; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace kumo {

// The experiment file of a name, with or without its ending: "mnist_lenet" is mnist_lenet.conf of
// the working directory, or else the installed one. Any other text is a path, and is returned as it
// is, whether such a file exists or not.
std::string FindExperiment(const std::string& name, const std::string& share);

// The names of the installed experiments without ".conf", sorted; none if nothing is installed.
std::vector<std::string> InstalledExperiments(const std::string& share);

}  // namespace kumo
