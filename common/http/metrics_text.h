// Prometheus metrics of a process. docs/operations.md has the same list.
//
// Pure function; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/http/process_snapshot.h"

namespace kumo {

// The kernel's figures of this process, for the standard process metrics.
struct OwnProcess {
  std::optional<double> cpu_s;  // user and system, all threads
  std::optional<int64_t> resident_bytes;
  std::optional<int64_t> virtual_bytes;
  std::optional<int64_t> open_fds, max_fds;
  std::optional<double> started_s;  // seconds since 1970
};

// Reads /proc/self; missing values stay unset. Any thread may call it.
OwnProcess LookAtOwnProcess();

// Identity of a process: its build and its name in the job.
struct ProcessTitle {
  std::string program;  // "kumo-server"
  std::string name;     // "server-0", "worker-3"
  std::string version, commit;
  bool coordinates = false;  // server 0
};

// Returns Prometheus's text format, 0.0.4. Unknown values are left out. snapshot: null before the
// first one.
std::string MetricsText(const ProcessTitle& title, const OwnProcess& process,
                        const ProcessSnapshot* snapshot);

}  // namespace kumo
