// Status table of a running job (`kumo status`).
//
// Pure function; thread-safe. The status comes from a peer: only printable characters of its
// strings reach the terminal.
#pragma once

#include <string>

#include "proto/wire.pb.h"

namespace kumo {

// columns: width of the terminal, a limit for all lines; 0: no limit.
std::string JobTable(const wire::JobStatus& status, int columns);

}  // namespace kumo
