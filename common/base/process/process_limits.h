// Process limits: the descriptors and threads that this process may have, and the check that they
// suffice before anything is opened. Without the check a process fails in the middle of its work:
// it cannot save, or a library aborts.
//
// Stateless functions. They read the machine; `root` replaces "/" of the kernel's files in tests.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace kumo {

// Raises the soft limits of descriptors (RLIMIT_NOFILE) and processes (RLIMIT_NPROC) to the hard
// ones. Children inherit them. Called once, first in main.
void RaiseSoftLimits();

// Descriptors and threads that a process needs at most, with its main thread.
struct ProcessNeed {
  std::string whose;  // for messages: "server 0"
  int64_t descriptors = 0;
  int64_t threads = 0;
  std::string settings;  // that determine them: "cluster.workers, cluster.servers"
};

// Descriptors of one process.
struct DescriptorRoom {
  int64_t free = 0;   // that can be opened
  int64_t limit = 0;  // of the process, with those that are open
};
DescriptorRoom RoomForDescriptors();
// Room in a program that this process starts: it has open the standard streams, and the descriptors
// that this process has inherited itself and not closed.
DescriptorRoom RoomForDescriptorsOfChild();

// Threads of all new processes together.
struct ThreadRoom {
  int64_t threads = INT64_MAX;
  std::string limit;  // the bounding limit, for people; "" if there is none
};
// The remainder of the control groups' limits (pids.max), or of the user's limit (RLIMIT_NPROC) if
// that is less. The kernel counts each thread as a process. The user's limit does not hold for
// root.
ThreadRoom RoomForThreads(const std::string& root = "");

// FailedPrecondition, with both figures and the remedy, if `room` does not suffice. `need` counts
// descriptors or threads beyond those in use.
Status CheckDescriptors(const ProcessNeed& need, const DescriptorRoom& room);
Status CheckThreads(const std::string& whose, int64_t need, const ThreadRoom& room,
                    const std::string& settings);

// Both, for this process as it starts, with its main thread and its open descriptors.
Status CheckLimits(const ProcessNeed& need);

}  // namespace kumo
