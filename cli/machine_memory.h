// How much memory processes that are started now may take.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace kumo {

// What the kernel says is available (/proc/meminfo), or what the control group of this process may
// still take where that is less: a container. Page cache that can be dropped counts as available.
// NotFound where the kernel does not say. root: another folder than "/" in tests.
Result<uint64_t> AvailableMemory(const std::string& root = "");

}  // namespace kumo
