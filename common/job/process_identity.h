// Process identity: distinguishes a process from earlier ones with the same name or role.
//
// A value.
#pragma once

#include <cstdint>
#include <string>

namespace kumo {

struct ProcessIdentity {
  std::string host;
  int64_t pid = 0;
  uint64_t incarnation = 0;  // random
  // Start of the process, by a monotonic clock. Two starts are comparable if their boots are equal.
  std::string boot;        // the kernel's boot id; "" if it is not known
  int64_t started_ms = 0;  // since the boot
};

// The calling process. `host`: name of its machine, for people.
ProcessIdentity ThisProcess(const std::string& host);

}  // namespace kumo
