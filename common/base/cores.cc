#include "common/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <thread>

#include "common/base/control_group.h"
#include "common/base/file.h"

namespace kumo {
namespace {

// Cores of a group's quota, rounded up; none without a quota. Version 2: "200000 100000" in
// cpu.max; version 1: two files, and -1 for no quota.
std::optional<uint64_t> CoresOfQuota(const ControlGroup& group) {
  uint64_t quota = 0, period = 0;
  if (group.version == 2) {
    std::ifstream file(JoinPath(group.folder, "cpu.max"));
    if (!(file >> quota >> period)) return std::nullopt;
  } else {
    int64_t signed_quota = 0;
    std::ifstream file(JoinPath(group.folder, "cpu.cfs_quota_us"));
    if (!(file >> signed_quota) || signed_quota <= 0) return std::nullopt;
    quota = static_cast<uint64_t>(signed_quota);
    period = NumberInKernelFile(JoinPath(group.folder, "cpu.cfs_period_us")).value_or(0);
  }
  if (period == 0) return std::nullopt;
  return std::max<uint64_t>(1, quota / period + (quota % period != 0 ? 1 : 0));
}

}  // namespace

int UsableCores(const std::string& root) {
  uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    cores = static_cast<uint64_t>(std::max(1, CPU_COUNT(&set)));
  }
  for (const ControlGroup& group : ControlGroupsOf("cpu", root)) {
    cores = std::min(cores, CoresOfQuota(group).value_or(cores));
  }
  return static_cast<int>(cores);
}

int ReadingThreadsFor(int cores) {
  constexpr int kMost = 8;
  return std::clamp(cores, 1, kMost);
}

}  // namespace kumo
