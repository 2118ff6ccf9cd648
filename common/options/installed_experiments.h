// The experiments that come with Kumo, which commands know by their bare names.
//
// share: Installation::share. Functions without state; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace kumo {

// The experiment file that a person means by `name`: "mnist_lenet" and "mnist_lenet.conf" are the
// installed ones, unless a file in the working directory is called so. Anything else is a path, and
// comes back as it is, whether there is such a file or not.
std::string FindExperiment(const std::string& name, const std::string& share);

// Their names without ".conf", sorted. None where nothing is installed.
std::vector<std::string> InstalledExperiments(const std::string& share);

}  // namespace kumo
