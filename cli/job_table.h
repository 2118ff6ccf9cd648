// A running job's status as a person reads it.
//
// Pure function; thread-safe. The status comes from a peer: whatever its strings hold, only
// printable characters reach the terminal.
#pragma once

#include <string>

#include "proto/wire.pb.h"

namespace kumo {

// columns: of the terminal, which no line is wider than; 0: no limit.
std::string JobTable(const wire::JobStatus& status, int columns);

}  // namespace kumo
