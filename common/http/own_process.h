// What the kernel says of this process: for the metrics that every program that is watched has.
//
// Function without state; any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace kumo {

struct OwnProcess {
  std::optional<double> cpu_s;  // user and system, all threads
  std::optional<int64_t> resident_bytes;
  std::optional<int64_t> virtual_bytes;
  std::optional<int64_t> open_fds, max_fds;
  std::optional<double> started_s;  // seconds since 1970
};

// Reads /proc/self; what is not there is not known.
OwnProcess LookAtOwnProcess();

}  // namespace kumo
