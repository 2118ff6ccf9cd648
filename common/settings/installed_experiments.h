// Installed experiments: the experiment files that come with Kumo, which commands know by name.
//
// share: Installation::share. Functions without state; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace kumo {

// The experiment file that a person means by `name`: "mnist_lenet" is mnist_lenet.conf of the
// working directory, or else the installed one, and so with its ending. Anything else is a path,
// and comes back as it is, whether there is such a file or not.
std::string FindExperiment(const std::string& name, const std::string& share);

// Their names without ".conf", sorted. None where nothing is installed.
std::vector<std::string> InstalledExperiments(const std::string& share);

}  // namespace kumo
