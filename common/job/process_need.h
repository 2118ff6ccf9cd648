// Needs of a job's processes in descriptors and threads, from the experiment alone. Each process
// refuses to start with too low limits, and `kumo check` and `kumo launch` do so earlier.
//
// Pure functions. The figures are upper bounds for a process on a CPU; a test of real processes
// compares them (tests/multiproc/limits_test.cc).
#pragma once

#include "common/base/process/process_limits.h"
#include "common/settings/experiment.h"

namespace kumo {

// servers: their number, at least 1.
ProcessNeed NeedOfServer(const Experiment& experiment, int servers);
ProcessNeed NeedOfWorker(const Experiment& experiment, int servers);

}  // namespace kumo
