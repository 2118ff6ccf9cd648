// A process's metrics as Prometheus reads them. docs/operations.md has the same list.
//
// Pure function; thread-safe.
#pragma once

#include <string>

#include "common/http/own_process.h"
#include "common/http/process_snapshot.h"

namespace kumo {

// Which build and which process of a job it is.
struct ProcessTitle {
  std::string program;  // "kumo-server"
  std::string name;     // "server-0", "worker-3"
  std::string version, commit;
};

// Prometheus' text format, 0.0.4. What is not known is not in it. snapshot: null before there is
// one.
std::string MetricsText(const ProcessTitle& title, const OwnProcess& process,
                        const ProcessSnapshot* snapshot);

}  // namespace kumo
