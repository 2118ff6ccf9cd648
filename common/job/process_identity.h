// One process, told from every other that has had its place in a job, or its name.
#pragma once

#include <cstdint>
#include <string>

namespace kumo {

struct ProcessIdentity {
  std::string host;
  int64_t pid = 0;
  uint64_t incarnation = 0;  // random
  // When the process was started, by a clock that nobody sets. Two such times can be compared where
  // their boots are the same.
  std::string boot;        // what the kernel calls this run of the machine; "": it does not say
  int64_t started_ms = 0;  // since then
};

// The calling process, as of now. `host`: what its machine is to be called.
ProcessIdentity ThisProcess(const std::string& host);

}  // namespace kumo
