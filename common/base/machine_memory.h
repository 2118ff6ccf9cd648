// How much memory processes that are started now may take, and what says so.
//
// Pure functions of what the kernel's files say; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace kumo {

struct MemoryRoom {
  uint64_t bytes = 0;
  std::string limit;  // what it is that sets it, for people: "the machine's memory"
};

// Of all processes that are started now together: what the kernel says is available
// (/proc/meminfo), or what a control group of this process, of version 2 or 1, or one above it, may
// still take where that is less: a container. Page cache that can be dropped counts as available.
// NotFound where the kernel does not say. root: another folder than "/" in tests.
Result<MemoryRoom> RoomOnMachine(const std::string& root = "");

// Of this process: the same, or what is left of its limit of address space where that is less
// (RLIMIT_AS, `ulimit -v`). address_space: that limit in bytes, UINT64_MAX for none.
Result<MemoryRoom> RoomInProcess(const std::string& root, uint64_t address_space);
Result<MemoryRoom> RoomInProcess();

}  // namespace kumo
