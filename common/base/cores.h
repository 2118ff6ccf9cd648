// Cores that this process may use: its CPU affinity, and the quotas of its control groups, which
// are what a container's `--cpus` and a pod's CPU limit become.
//
// Pure functions of the kernel's files; thread-safe.
#pragma once

#include <string>

namespace kumo {

// At least 1. A fraction of a core counts as a core. root: replaces "/" of the kernel's files in
// tests.
int UsableCores(const std::string& root = "");

// Threads that read samples outside memory if the experiment does not say: one per core, at most 8.
int ReadingThreadsFor(int cores);

}  // namespace kumo
