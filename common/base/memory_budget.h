// Memory budget: the memory available to a process with the limit that bounds it, and the estimate
// of what a process will need.
//
// Pure functions of the kernel's files; thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct MemoryRoom {
  uint64_t bytes = 0;
  std::string limit;  // the bounding limit, for people: "the machine's memory"
};

// Memory available to new processes together: MemAvailable of /proc/meminfo, or the remainder of a
// control group (version 1 or 2) of this process or one of its ancestors if that is less
// (containers). Reclaimable page cache counts as available. NotFound if the kernel does not tell.
// root: replaces "/" in tests.
Result<MemoryRoom> RoomOnMachine(const std::string& root = "");

// Memory available to this process: RoomOnMachine, or the remainder of its address space limit
// (RLIMIT_AS, `ulimit -v`) if that is less. address_space: that limit in bytes, UINT64_MAX for
// none.
Result<MemoryRoom> RoomInProcess(const std::string& root, uint64_t address_space);
Result<MemoryRoom> RoomInProcess();

// Memory estimate of a process, made before it allocates: parts with sizes and the settings that
// determine them, and their sum.
//
// A value. Sums and products saturate at INT64_MAX.
class MemoryNeed {
 public:
  struct Part {
    std::string what;
    int64_t bytes = 0;
    std::string settings;  // that determine the size: "sync.minibatch, data.prefetch"; or ""
  };

  // whose: the process, for messages: "a worker".
  explicit MemoryNeed(std::string whose) : whose_(std::move(whose)) {}

  // Adds a part of size product(factors), which are not negative; a size of 0 adds nothing.
  void Add(std::string what, std::initializer_list<int64_t> factors, std::string settings = "");

  const std::string& whose() const { return whose_; }
  const std::vector<Part>& parts() const { return parts_; }
  int64_t bytes() const;

  // "a worker needs 134 MiB (140509184 bytes):".
  std::string Head() const;
  // A line per part, largest first, of at most `columns`; 0: no limit.
  std::string Table(int columns) const;
  // The largest parts with their settings: "20.1 GiB for activations (sync.minibatch)".
  std::string Largest() const;

  // FailedPrecondition, with both amounts, the largest parts and their settings, if the memory does
  // not suffice.
  Status CheckFits(const MemoryRoom& room) const;

 private:
  const std::string whose_;
  std::vector<Part> parts_;
};

// The product of non-negative numbers; INT64_MAX if it is larger.
int64_t SaturatingProduct(std::initializer_list<int64_t> factors);

}  // namespace kumo
